import assert from 'node:assert/strict'
import { test } from 'node:test'
import { brokenOrder, importsIn } from '../../../scripts/rooms.ts'

test('a file may import its own room and those before it, and of another feature only its needs', () => {
  assert.equal(brokenOrder('src/queue/a.ts', 'src/queue/check/b.ts'), undefined)
  assert.equal(brokenOrder('src/queue/a.ts', 'src/kit/b.ts'), undefined)
  assert.equal(brokenOrder('src/kit/a.ts', 'src/queue/b.ts'), 'rooms')
  assert.equal(brokenOrder('src/bots/a.ts', 'src/features/relay/needs.ts'), 'rooms')
  assert.equal(brokenOrder('src/features/relay/a.ts', 'src/features/relay/b.ts'), undefined)
  assert.equal(brokenOrder('src/features/relay/a.ts', 'src/features/fleet/b.ts'), 'features')
  assert.equal(brokenOrder('src/features/relay/a.ts', 'src/features/fleet/needs.ts'), undefined)
  assert.equal(brokenOrder('src/features/relay/a.ts', 'src/features/fleet/module.ts'), 'features')
  assert.equal(brokenOrder('src/main.ts', 'src/modules/a.ts'), undefined)
})

test('imports of types and imports that load later are found, and packages are not', () => {
  const text = [
    "import type { A } from '../kit/a.ts'",
    "import {\n  b,\n} from './b.ts'",
    "import './c.ts'",
    "const d = await import('../d.ts')",
    "const f = await import(\n  '../f.ts'\n)",
    "import { e } from 'node:fs'",
  ].join('\n')
  const found = ['src/kit/a.ts', 'src/shard/b.ts', 'src/shard/c.ts', 'src/d.ts', 'src/f.ts']
  assert.deepEqual(importsIn('src/shard/file.ts', text), found)
})
