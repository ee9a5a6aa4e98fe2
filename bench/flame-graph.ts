/**
 * A flame graph as SVG text: a box for each function, as wide as its part of the time, above the function that called it.
 * A viewer shows the complete name, file and part as the box's title; there are no scripts. Boxes of one caller are in
 * the order of their names, so that graphs of two commits can be compared.
 */
import { escaped } from './chart.ts'
import type { FlameFrame } from './flame-tree.ts'

export interface FlameGraphOptions {
  readonly title: string
  readonly root: FlameFrame
}

const width = 1200
const rowHeight = 17
const top = 52
const bottom = 8
/** A narrower box could not be seen. */
const partMin = 0.0015
/** Of the monospaced font. */
const letterWidth = 6.1
const textWidthMin = 24

const kinds = {
  ours: 'Postbote',
  package: 'packages',
  node: 'Node.js',
  native: 'V8, libuv, kernel, LevelDB',
} as const

const style = `
text { font: 10px ui-monospace, Menlo, Consolas, monospace; fill: #1f2328 }
.title { font: 600 14px system-ui, sans-serif }
.key { font: 12px system-ui, sans-serif }
rect { stroke: #fff; stroke-width: .5 }
.ours { fill: #f2b35a }
.package { fill: #9fd0a5 }
.node { fill: #9dc1ea }
.native { fill: #d0d7de }
.sheet { fill: #fff }`

interface Box {
  readonly frame: FlameFrame
  /** In us from the left. */
  readonly start: number
  readonly depth: number
}

export function flameGraph({ title, root }: FlameGraphOptions): string {
  const boxes = boxesOf(root)
  const rows = 1 + Math.max(...boxes.map(({ depth }) => depth))
  const height = top + rows * rowHeight + bottom
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${style}\n</style>`,
    `<rect class="sheet" width="${width}" height="${height}"/>`,
    `<text class="title" x="8" y="20">${escaped(title)}</text>`,
    ...keyLines(),
    ...boxes.map((box) => boxLine(box, { rows, allUs: root.us })),
    '</svg>',
    '',
  ].join('\n')
}

function keyLines(): string[] {
  return Object.entries(kinds).flatMap(([kind, text], index) => {
    const x = 8 + index * 110
    return [
      `<rect class="${kind}" x="${x}" y="30" width="12" height="12"/>`,
      `<text class="key" x="${x + 17}" y="40">${text}</text>`,
    ]
  })
}

/** The callers come before what they call. */
function boxesOf(root: FlameFrame): Box[] {
  const boxes: Box[] = [{ frame: root, start: 0, depth: 0 }]
  for (const { frame, start, depth } of boxes) {
    let next = start
    for (const child of inOrder(frame)) {
      if (child.us >= partMin * root.us) boxes.push({ frame: child, start: next, depth: depth + 1 })
      next += child.us
    }
  }
  return boxes
}

function inOrder({ children }: FlameFrame): FlameFrame[] {
  return [...children.values()].toSorted((a, b) => (labelOf(a) < labelOf(b) ? -1 : 1))
}

function boxLine(
  { frame, start, depth }: Box,
  { rows, allUs }: { readonly rows: number; readonly allUs: number },
): string {
  const x = (width * start) / allUs
  const boxWidth = (width * frame.us) / allUs
  const y = top + (rows - 1 - depth) * rowHeight
  const part = `${((100 * frame.us) / allUs).toFixed(1)} %`
  const box = `<rect class="${frame.place.kind}" x="${x.toFixed(1)}" y="${y}" width="${boxWidth.toFixed(1)}" height="${rowHeight - 1}"/>`
  return `<g><title>${escaped(`${labelOf(frame)}: ${part}`)}</title>${box}${textOf(frame, { x, y, boxWidth })}</g>`
}

function textOf(
  { name }: FlameFrame,
  { x, y, boxWidth }: { readonly x: number; readonly y: number; readonly boxWidth: number },
): string {
  if (boxWidth < textWidthMin) return ''
  const letters = Math.floor((boxWidth - 4) / letterWidth)
  const text = name.length <= letters ? name : `${name.slice(0, letters - 1)}…`
  return `<text x="${(x + 3).toFixed(1)}" y="${y + 12}">${escaped(text)}</text>`
}

function labelOf({ name, place, line }: FlameFrame): string {
  return place.file === '' ? name : `${name} ${place.file}:${line}`
}
