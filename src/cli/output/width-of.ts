/**
 * How many cells of a terminal a text takes. Characters of East Asian scripts and emoji take two, and marks that stand on the
 * letter before them none. Node.js has a table for this and does not show it, so a few ranges stand for it: they may count a
 * rare character too high, which moves a column by a cell, and no line wraps by it. Pure, and linear.
 */

const wide =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f000}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u
const resting = /[\p{Mn}\p{Me}]/u
const plain = /^[\x20-\x7e]*$/

/** Returns the cells that a text takes. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const character of text) width += cellsOf(character)
  return width
}

function cellsOf(character: string): number {
  if (wide.test(character)) return 2
  return resting.test(character) ? 0 : 1
}

/** Returns the text, or as much of its beginning as fits, with `…` at its end. */
export function cutText(text: string, widthMax: number): string {
  return widthOf(text) <= widthMax ? text : `${beginning(text, widthMax - 1)}…`
}

/** Returns as much of a text as fits. */
function beginning(text: string, widthMax: number): string {
  let width = 0
  let end = 0
  for (const character of text) {
    width += cellsOf(character)
    if (width > widthMax) break
    end += character.length
  }
  return text.slice(0, end)
}

/** Splits a text into lines that fit. A word that is longer than a line goes on in the next one, and loses nothing. */
export function foldText(text: string, widthMax: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  const pieces = text.split(' ').flatMap((word) => piecesOf(word, widthMax))
  for (const [nth, piece] of pieces.entries()) {
    const longer = nth === 0 ? piece : `${line} ${piece}`
    if (nth > 0 && widthOf(longer) > widthMax) {
      lines.push(line)
      line = piece
    } else line = longer
  }
  return [...lines, line]
}

function piecesOf(word: string, widthMax: number): readonly string[] {
  const pieces: string[] = []
  let rest = word
  while (Number.isFinite(widthMax) && widthOf(rest) > widthMax) {
    const piece = beginning(rest, widthMax)
    // A line that is narrower than one character cannot be filled.
    if (piece === '') break
    pieces.push(piece)
    rest = rest.slice(piece.length)
  }
  return [...pieces, rest]
}
