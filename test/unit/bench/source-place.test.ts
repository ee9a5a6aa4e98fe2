import assert from 'node:assert/strict'
import { SourceMap } from 'node:module'
import { test } from 'node:test'
import { inSources, sourcePlace } from '../../../bench/source-place.ts'

test('a place names no directory of the machine', () => {
  for (const [url, kind, file] of [
    ['', 'native', ''],
    ['node:net', 'node', 'node:net'],
    ['file:///x/dist/src/queue/window.js', 'ours', 'src/queue/window.js'],
    ['file:///x/src/queue/window.ts', 'ours', 'src/queue/window.ts'],
    ['file:///x/node_modules/a/node_modules/b/src/c.js', 'package', 'b/src/c.js'],
    ['file:///x/secret/other.js', 'package', 'other.js'],
  ] as const) {
    assert.deepEqual(sourcePlace(url), { kind, file })
  }
})

test('a function of a bundle gets the file and line of its source', () => {
  // The second line of the bundle is the fourth line of the source.
  const map = new SourceMap({
    version: 3,
    file: 'worker.js',
    sources: ['../../src/clock.ts'],
    sourcesContent: [],
    names: [],
    mappings: ';AAGA',
    sourceRoot: '',
  })
  const callFrame = {
    functionName: 'now',
    url: 'file:///x/dist/workers/worker.js',
    lineNumber: 1,
    columnNumber: 4,
  }
  const native = { functionName: 'writev', url: '', lineNumber: -1 }
  const profile = {
    nodes: [
      { id: 1, callFrame },
      { id: 2, callFrame: native },
    ],
    samples: [],
    timeDeltas: [],
  }
  const frames = inSources(profile, () => map).nodes.map((node) => node.callFrame)
  assert.equal(frames[0]?.url, 'file:///x/src/clock.ts')
  assert.equal(frames[0]?.lineNumber, 3)
  assert.deepEqual(frames[1], native)
  assert.deepEqual(inSources(profile, () => undefined).nodes[0]?.callFrame, callFrame)
})
