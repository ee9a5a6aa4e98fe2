/**
 * Renders templates of charts/ in tests, without helm: the part of Go's template language that they use, and no more. An
 * unknown function, an unknown name, and a block that is not closed are errors.
 *
 *   {{ pipeline }}   {{ if pipeline }} {{ else }} {{ end }}   {{ range pipeline }} {{ end }}   with - for white space
 *   pipeline: a path such as .Values.image.tag, the dot, "text", a number, or a function with arguments; joined by |
 */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'

type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly pipeline: string }
  | {
      readonly kind: 'if' | 'range'
      readonly pipeline: string
      readonly body: readonly Node[]
      readonly otherwise: readonly Node[]
    }

const functions: Readonly<Record<string, (...args: readonly unknown[]) => unknown>> = {
  not: (value) => !isTrue(value),
  eq: (one, other) => one === other,
  add: (...numbers) => numbers.reduce((sum: number, each) => sum + Number(each), 0),
  quote: (value) => JSON.stringify(textOf(value)),
  toJson: (value) => JSON.stringify(value),
  // JSON is YAML, too.
  toYaml: (value) => JSON.stringify(value),
  nindent: (count, text) => `\n${' '.repeat(Number(count))}${textOf(text)}`,
  sha256sum: (text) => createHash('sha256').update(textOf(text)).digest('hex'),
  printf: (form, ...values) =>
    values.reduce((text: string, value) => text.replace('%s', () => textOf(value)), textOf(form)),
}

/** @param root - what the dot means outside of a range: `{ Values, Release }` */
export function renderTemplate(template: string, root: object): string {
  const tokens = template
    .replace(/\s*\{\{- /g, '{{ ')
    .replace(/ -\}\}\s*/g, ' }}')
    .split(/(\{\{.*?\}\})/s)
  const parts = [...tokens]
  const nodes = readNodes(parts)
  assert.equal(parts.length, 0, `an end without its beginning: ${parts[0]}`)
  return render(nodes, root, root)
}

/** Reads up to the end or the else of the enclosing block, which stays. */
function readNodes(parts: string[]): Node[] {
  const nodes: Node[] = []
  for (let part = parts[0]; part !== undefined; part = parts[0]) {
    const action = /^\{\{ (.*?) \}\}$/s.exec(part)?.[1]
    if (action === 'end' || action === 'else') return nodes
    parts.shift()
    if (action === undefined) {
      assert(!part.includes('{{'), `no template: ${part}`)
      nodes.push({ kind: 'text', text: part })
      continue
    }
    const [, kind, pipeline = action] = /^(if|range) (.*)$/s.exec(action) ?? []
    if (kind === 'if' || kind === 'range') nodes.push(readBlock(kind, pipeline, parts))
    else nodes.push({ kind: 'value', pipeline })
  }
  return nodes
}

function readBlock(kind: 'if' | 'range', pipeline: string, parts: string[]): Node {
  const body = readNodes(parts)
  const hasElse = parts[0] === '{{ else }}'
  if (hasElse) parts.shift()
  const otherwise = hasElse ? readNodes(parts) : []
  assert.equal(parts.shift(), '{{ end }}', `${kind} ${pipeline} has no end`)
  return { kind, pipeline, body, otherwise }
}

function render(nodes: readonly Node[], dot: unknown, root: object): string {
  return nodes
    .map((node): string => {
      if (node.kind === 'text') return node.text
      const value = valueOf(node.pipeline, dot, root)
      if (node.kind === 'value') return textOf(value)
      if (node.kind === 'if') return render(isTrue(value) ? node.body : node.otherwise, dot, root)
      assert(Array.isArray(value), `${node.pipeline} is no list`)
      return value.map((item: unknown) => render(node.body, item, root)).join('')
    })
    .join('')
}

function valueOf(pipeline: string, dot: unknown, root: object): unknown {
  let value: unknown
  for (const [nth, command] of pipeline.split(' | ').entries()) {
    const [name = '', ...words] = command.match(/"[^"]*"|\S+/g) ?? []
    const args = words.map((word) => operand(word, dot, root))
    if (nth > 0) args.push(value)
    const run = functions[name]
    if (run !== undefined) value = run(...args)
    else {
      assert.equal(args.length, 0, `no function: ${name}`)
      value = operand(name, dot, root)
    }
  }
  return value
}

function operand(word: string, dot: unknown, root: object): unknown {
  if (word === '.') return dot
  if (/^"|^\d+$/.test(word)) return JSON.parse(word)
  assert.match(word, /^(?:\.\w+)+$/, 'expected a path, a text or a number')
  return word
    .slice(1)
    .split('.')
    .reduce((value: unknown, key) => {
      const entries = new Map<string, unknown>(Object.entries(Object(value)))
      assert(entries.has(key), `${word} does not exist`)
      return entries.get(key)
    }, root)
}

function isTrue(value: unknown): boolean {
  if (Array.isArray(value)) return value.length > 0
  return Boolean(value)
}

function textOf(value: unknown): string {
  assert(value !== undefined && value !== null, 'a value is missing')
  return typeof value === 'string' ? value : JSON.stringify(value)
}
