/**
 * Finds regular expressions whose cost may grow faster than the text that they see. V8 backtracks, so these are
 *
 *   late        an unbounded repetition with something after it, in an expression that may begin anywhere: `\d+:` looks for a
 *               colon from each digit on
 *   neighbors   two unbounded repetitions side by side that take the same characters: `\s*\s*$`
 *   nested      an unbounded repetition within another one: `(?:a+)*$`
 *
 * Not all of them are slow, so whoever uses one says why it is not. What it reads of an expression is enough for this: groups,
 * classes, quantifiers and anchors.
 */

export type CostlyKind = 'late' | 'neighbors' | 'nested'

interface Item {
  /** The source of one character or class; undefined for a group. */
  readonly atom: string | undefined
  readonly alternatives: readonly (readonly Item[])[]
  readonly isAnchor: boolean
  readonly isUnbounded: boolean
  readonly isOptional: boolean
}

/** The characters that classes are compared by: those of ASCII and some beyond. */
const samples = Array.from({ length: 0x180 }, (_, code) => String.fromCharCode(code))

/** Returns why an expression may be slow. */
export function costlyKindsOf(source: string, flags: string): readonly CostlyKind[] {
  const { alternatives } = new Reader(source).group()
  const kinds: CostlyKind[] = []
  const isSticky = flags.includes('y')
  if (
    !isSticky &&
    alternatives.some((items) => isLate(items, { isAnchored: false, isLast: true }))
  ) {
    kinds.push('late')
  }
  if (alternatives.some((items) => hasNeighbors(items, flags))) kinds.push('neighbors')
  if (alternatives.some((items) => isNested(items, false))) kinds.push('nested')
  return kinds
}

interface Around {
  readonly isAnchored: boolean
  /** Whether nothing follows. */
  readonly isLast: boolean
}

function isLate(items: readonly Item[], { isAnchored, isLast }: Around): boolean {
  let anchored = isAnchored
  for (const [nth, item] of items.entries()) {
    if (item.isAnchor && nth === 0) anchored = true
    if (anchored) return false
    const isEnd = isLast && nth === items.length - 1
    if (item.isUnbounded && !isEnd) return true
    const around = { isAnchored: false, isLast: isEnd }
    if (item.alternatives.some((inner) => isLate(inner, around))) return true
  }
  return false
}

function isNested(items: readonly Item[], isWithin: boolean): boolean {
  return items.some(
    ({ isUnbounded, alternatives }) =>
      (isWithin && isUnbounded) ||
      alternatives.some((inner) => isNested(inner, isWithin || isUnbounded)),
  )
}

function hasNeighbors(items: readonly Item[], flags: string): boolean {
  for (const [nth, item] of items.entries()) {
    if (item.alternatives.some((inner) => hasNeighbors(inner, flags))) return true
    if (!item.isUnbounded || item.atom === undefined) continue
    for (const next of items.slice(nth + 1)) {
      if (next.isUnbounded && next.atom !== undefined && overlap(item.atom, next.atom, flags)) {
        return true
      }
      if (!next.isOptional) break
    }
  }
  return false
}

function overlap(a: string, b: string, flags: string): boolean {
  const [first, second] = [a, b].map((atom) => new RegExp(`^(?:${atom})$`, flags.replace('y', '')))
  return samples.some((sample) => first?.test(sample) === true && second?.test(sample) === true)
}

const classItem = /\[(?:\\.|[^\]\\])*\]/y
const escapedItem = /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-f]{4}|x[\da-f]{2}|k<[^>]*>|.)/iy
const opening = /\((?:\?(?:[:=!]|<[=!]|<\w+>))?/y
const quantifier = /(?:[*+?]|\{\d+(?:,\d*)?\})\??/y

class Reader {
  readonly #source: string
  #at = 0

  constructor(source: string) {
    this.#source = source
  }

  /** Reads to the end of the group, or of the source. */
  group(): { readonly alternatives: readonly (readonly Item[])[] } {
    const alternatives: Item[][] = [[]]
    while (this.#at < this.#source.length && this.#source[this.#at] !== ')') {
      if (this.#source[this.#at] === '|') {
        this.#at += 1
        alternatives.push([])
      } else alternatives.at(-1)?.push(this.#item())
    }
    return { alternatives }
  }

  #item(): Item {
    const open = this.#take(opening)
    if (open !== undefined) {
      const { alternatives } = this.group()
      this.#at += 1
      const isAnchor = open.startsWith('(?<=') || open.startsWith('(?<!')
      return { atom: undefined, alternatives, isAnchor, ...this.#quantity() }
    }
    const atom = this.#take(classItem) ?? this.#take(escapedItem) ?? this.#character()
    return { atom, alternatives: [], isAnchor: atom === '^', ...this.#quantity() }
  }

  #character(): string {
    const character = this.#source[this.#at] ?? ''
    this.#at += 1
    return character
  }

  #quantity(): Pick<Item, 'isUnbounded' | 'isOptional'> {
    const text = this.#take(quantifier) ?? ''
    return {
      isUnbounded: /^(?:[*+]|\{\d+,\})/.test(text),
      isOptional: /^(?:[*?]|\{0,?)/.test(text),
    }
  }

  #take(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at
    const [text] = expression.exec(this.#source) ?? []
    if (text !== undefined) this.#at += text.length
    return text
  }
}
