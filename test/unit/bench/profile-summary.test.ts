import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CpuProfile } from '../../../bench/inspected-process.ts'
import { profileShares, profileSummary } from '../../../bench/profile-summary.ts'

function frame(functionName: string, url: string) {
  return { functionName, url, lineNumber: 9 }
}

const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', ''), children: [2, 5] },
    { id: 2, callFrame: frame('send', 'file:///x/dist/src/http/reply.js'), children: [3] },
    { id: 3, callFrame: frame('write', 'node:net'), children: [4] },
    { id: 4, callFrame: frame('writev', '') },
    { id: 5, callFrame: frame('(idle)', '') },
  ],
  samples: [2, 4, 5],
  timeDeltas: [250, 750, 9_000],
}

test('time below a function of Postbote is charged to it, and idle time to none', () => {
  const [self, charged] = profileSummary(profileShares([profile]))
    .split('####')
    .slice(1)
  assert.match(self ?? '', /75\.0 % {2}writev\n +25\.0 % {2}send src\/http\/reply\.js:10/)
  assert.match(charged ?? '', /100\.0 % {2}send src\/http\/reply\.js:10/)
  assert.doesNotMatch(self ?? '', /idle/)
})

test('a process that used little CPU beside the others is omitted', () => {
  const idle: CpuProfile = { ...profile, timeDeltas: [10, 0, 9_990] }
  assert.deepEqual(profileShares([profile, idle]).self, profileShares([profile]).self)
})
