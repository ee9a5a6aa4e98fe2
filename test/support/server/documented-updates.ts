/** The updates that the documentation, the examples and the sources show: people push them as they are. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { updateTypes } from '../../../src/kit/update-types.ts'

const root = new URL('../../../../', import.meta.url)
const start = new RegExp(`\\{(?:"update_id":\\d+,)?"(?:${updateTypes.join('|')})":\\{`, 'g')

const files: readonly string[] = ['README.md', 'docs', 'examples', 'scripts', 'src'].flatMap(
  filesIn,
)

function filesIn(path: string): string[] {
  const place = new URL(path, root)
  if (!statSync(place).isDirectory()) return [path]
  return readdirSync(place).flatMap((name) => filesIn(`${path}/${name}`))
}

/** Returns the updates in all files, without their ids. */
export function documentedUpdates(): readonly DocumentedUpdate[] {
  return files.flatMap((file) => {
    const text = readFileSync(new URL(file, root), 'utf8')
    return [...text.matchAll(start)].flatMap(({ index }) => {
      const json = objectAt(text, index)
      // An ellipsis stands for what the reader fills in.
      if (json === undefined || json.includes('...')) return []
      const { update_id: _id, ...update } = JSON.parse(json) as Record<string, object>
      return [{ file, update }]
    })
  })
}

export interface DocumentedUpdate {
  readonly file: string
  readonly update: Readonly<Record<string, object>>
}

function objectAt(text: string, from: number): string | undefined {
  let depth = 0
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++
    if (text[at] === '}') depth--
    if (depth === 0) return text.slice(from, at + 1)
  }
  return undefined
}
