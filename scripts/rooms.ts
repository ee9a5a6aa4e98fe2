/**
 * The rooms of src/ and their order (docs/inside/design.md): a file imports only from its own room and from the rooms before it, and a
 * feature imports of another feature only its needs.ts, which exports what others need.
 */
import { dirname, join, normalize } from 'node:path'

/** From the ground up. `page` and `clients` are programs apart: test/tidy.test.ts says what these import. */
export const rooms: readonly string[] = [
  'kit',
  'http',
  'api',
  'config',
  'leveldb-files',
  'store',
  'shard',
  'delivery',
  'queue',
  'admission',
  'process',
  'bots',
  'bot-api',
  'links',
  'access',
  'private-api',
  'worker',
  'cli',
  'features',
  'nodes',
  'modules',
]

/** Returns the room of a file; undefined if it is in none, such as src/main.ts. */
export function roomOf(file: string): string | undefined {
  const [top, room = ''] = file.split('/')
  return top === 'src' && rooms.includes(room) ? room : undefined
}

/** Returns which order an import breaks; undefined if it breaks none. */
export function brokenOrder(file: string, imported: string): 'rooms' | 'features' | undefined {
  const [from, to] = [roomOf(file), roomOf(imported)]
  if (from === undefined || to === undefined) return undefined
  if (from !== 'features' || to !== 'features') {
    return rooms.indexOf(from) < rooms.indexOf(to) ? 'rooms' : undefined
  }
  const [, , own] = file.split('/')
  const [, , feature, ...rest] = imported.split('/')
  return own === feature || rest.join('/') === 'needs.ts' ? undefined : 'features'
}

/** Returns the files that a file imports, types included. */
export function importsIn(file: string, text: string): readonly string[] {
  return [...text.matchAll(/(?:from|import\(|^import)\s*'(\.[^']+)'/gm)].map(([, path = '']) =>
    normalize(join(dirname(file), path)),
  )
}
