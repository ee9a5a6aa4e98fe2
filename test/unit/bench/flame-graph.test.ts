import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flameGraph } from '../../../bench/flame-graph.ts'
import { flameTree } from '../../../bench/flame-tree.ts'
import type { CpuProfile } from '../../../bench/inspected-process.ts'

function frame(functionName: string, url: string, lineNumber = 9) {
  return { functionName, url, lineNumber }
}

const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', ''), children: [2, 5, 6] },
    { id: 2, callFrame: frame('send<T>', 'file:///x/dist/src/http/reply.js'), children: [3] },
    { id: 3, callFrame: frame('write', 'file:///x/node_modules/undici/lib/a.js') },
    { id: 5, callFrame: frame('(idle)', '') },
    { id: 6, callFrame: frame('(garbage collector)', '') },
  ],
  samples: [2, 3, 3, 5, 6],
  timeDeltas: [100, 200, 300, 9_000, 400],
}

test('a box is as wide as the time in the function and in what it calls, without idle time', () => {
  const svg = flameGraph({ title: 'a & b', root: flameTree([profile]) })
  assert.match(svg, /<title>send&lt;T&gt; src\/http\/reply\.js:10: 60\.0 %<\/title>/)
  assert.match(svg, /<title>write undici\/lib\/a\.js:10: 50\.0 %<\/title>/)
  assert.match(svg, /<title>\(garbage collector\): 40\.0 %<\/title>/)
  assert.match(svg, /class="ours" x="480\.0" y="\d+" width="720\.0"/)
  assert.doesNotMatch(svg, /idle|dist/)
  assert.match(svg, /<title>a &amp; b<\/title>/)
})

test('equal calls of several processes and lines are one box', () => {
  const other = {
    ...profile,
    nodes: profile.nodes.map((node) => ({
      ...node,
      callFrame: { ...node.callFrame, lineNumber: 20 },
    })),
  }
  const root = flameTree([profile, other])
  assert.equal(root.us, 2_000)
  assert.deepEqual(
    [...root.children.values()].map(({ name, us }) => [name, us]),
    [
      ['send<T>', 1_200],
      ['(garbage collector)', 800],
    ],
  )
})

test('a function that is too narrow to be seen has no box', () => {
  const timeDeltas = [100_000, 1, 1, 0, 1]
  const svg = flameGraph({ title: '', root: flameTree([{ ...profile, timeDeltas }]) })
  assert.doesNotMatch(svg, /garbage/)
})
