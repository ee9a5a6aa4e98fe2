/**
 * Generates docs/inside/rooms.svg from the imports of src/: the rooms in their order, and for each which rooms it stands on.
 * A room may import whatever the rooms below it stand on, so a line that follows from two others is left out: of some 140
 * lines about 25 remain. An import that runs against the order is a line on the other side. The picture has no numbers of
 * files or imports, so that it changes only if a room gets or loses a neighbor.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importsIn, roomOf, rooms } from './rooms.ts'

/** From a room to the rooms that its files import. */
export type RoomImports = ReadonlyMap<string, ReadonlySet<string>>

/** A room and one that it stands on, by their numbers in the order. */
type Line = readonly [from: number, to: number]

const root = fileURLToPath(new URL('../../', import.meta.url))
const width = 440
const rowHeight = 30
const boxHeight = 22
const boxWidth = 110
const boxLeft = (width - boxWidth) / 2
const top = 34
/** How far the control points of a curve stand off for each room that it passes: the longest one still stays in the picture. */
const standOffPerRoom = 10

const style = `text { font: 12px system-ui, sans-serif; fill: #1f2328 }
.faint { fill: #59636e }
rect { fill: #ddf4ff; stroke: #2f6fbd }
path { fill: none; stroke: #2f6fbd; stroke-width: 1.5 }
.against { stroke: #bf5b17; stroke-dasharray: 4 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.faint { fill: #9198a1 }
rect { fill: #12304f; stroke: #5b9bea }
path { stroke: #5b9bea }
.against { stroke: #e8935a }
}`

/** Returns the rooms that the files of each room import. */
export function roomImports(): RoomImports {
  const found = new Map<string, Set<string>>(rooms.map((room) => [room, new Set()]))
  for (const name of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
    const file = `src/${name}`
    const room = roomOf(file)
    if (room === undefined || !file.endsWith('.ts')) continue
    for (const imported of importsIn(file, readFileSync(join(root, file), 'utf8'))) {
      const other = roomOf(imported)
      if (other !== undefined && other !== room) found.get(room)?.add(other)
    }
  }
  return found
}

/**
 * Returns on which rooms each room stands, without those that follow from the others.
 *
 * @param imports - may have imports against the order, which are left out
 */
export function standsOn(
  imports: RoomImports,
  order: readonly string[] = rooms,
): ReadonlyMap<string, readonly string[]> {
  const allBelow = new Map<string, ReadonlySet<string>>()
  const nearest = new Map<string, readonly string[]>()
  for (const [nth, room] of order.entries()) {
    const below = order.slice(0, nth).filter((other) => imports.get(room)?.has(other))
    const isBelow = (upper: string, lower: string): boolean =>
      allBelow.get(upper)?.has(lower) === true
    nearest.set(
      room,
      below.filter((lower) => !below.some((upper) => isBelow(upper, lower))),
    )
    allBelow.set(room, new Set(below.flatMap((lower) => [lower, ...(allBelow.get(lower) ?? [])])))
  }
  return nearest
}

/** Returns the text of docs/inside/rooms.svg. */
export function roomsPicture(imports: RoomImports = roomImports()): string {
  const nearest = standsOn(imports)
  const down = rooms.flatMap((room, from) =>
    (nearest.get(room) ?? []).map((lower): Line => [from, rooms.indexOf(lower)]),
  )
  const against = rooms.flatMap((room, from) =>
    rooms.flatMap((upper, to): Line[] =>
      to > from && imports.get(room)?.has(upper) ? [[from, to]] : [],
    ),
  )
  const height = top + rooms.length * rowHeight
  const title = 'The rooms of src: a line leads down to a room that files import'
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${title}</title>`,
    `<style>\n${style}\n</style>`,
    `<text class="faint" x="${boxLeft + boxWidth}" y="18">imports</text>`,
    ...(against.length === 0
      ? []
      : [`<text class="faint" x="${boxLeft}" y="18" text-anchor="end">against the order</text>`]),
    ...down.map((line) => path(line)),
    ...against.map((line) => path(line, ' class="against"')),
    ...rooms.map(
      (room, nth) =>
        `<rect x="${boxLeft}" y="${middleOf(nth) - boxHeight / 2}" width="${boxWidth}" height="${boxHeight}" rx="4"/>` +
        `<text x="${width / 2}" y="${middleOf(nth) + 4}" text-anchor="middle">${room}</text>`,
    ),
    '</svg>',
    '',
  ].join('\n')
}

/** The first room is at the bottom. */
function middleOf(nth: number): number {
  return top + (rooms.length - nth - 0.5) * rowHeight
}

/** Neighbors have a straight line between their boxes. Others have a curve: on the right downward, on the left upward. */
function path([from, to]: Line, attributes = ''): string {
  const [start, end] = [middleOf(from), middleOf(to)]
  if (from - to === 1) {
    return `<path d="M${width / 2} ${start + boxHeight / 2}V${end - boxHeight / 2}"/>`
  }
  const isDown = to < from
  const side = isDown ? boxLeft + boxWidth : boxLeft
  const away = side + (isDown ? 1 : -1) * standOffPerRoom * (1 + Math.abs(from - to))
  return `<path${attributes} d="M${side} ${start}C${away} ${start} ${away} ${end} ${side} ${end}"/>`
}
