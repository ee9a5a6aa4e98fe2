/**
 * What hostile answers cost, beside as many good ones: CPU time of this process, and memory afterward. The answers come from
 * another process. CPU time is compared, which other programs hardly affect, and a ratio that is too high is measured again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../src/kit/clock.ts'
import { kib } from '../../../src/kit/limits.ts'
import { settle } from '../../support/kit/fake-clock.ts'
import { heldMemory } from '../../support/kit/held-memory.ts'
import {
  brokenOff,
  endless,
  notHttp,
  refusals,
  whole,
} from '../../support/network/hostile-answers.ts'
import { HostileProcess } from '../../support/network/hostile-process.ts'
import { asked, outgoingUses } from '../../support/network/outgoing-uses.ts'

/** The thread for traces has its own memory and is not in the way of others. */
const { 'an export of traces': _traces, ...uses } = outgoingUses
/** As large as what any use reads in place. */
const good = whole('200 OK', '{"ok":true,"result":[]}'.padEnd(48 * kib), 'Content-Type: a/b\r\n')
const questions = 3
/** An answer may cost as much as so many good ones. Measured: up to 15; short headers had 90. */
const costRatioMax = 30
/** A body is as dear as it is long: a relay reads 8 MiB, and a call passes on what its client takes. */
const bulk: ReadonlySet<string> = new Set([
  'a body without a length',
  'a body of an older server',
  'a body whose length nothing has',
  'chunks of usual sizes',
  'extensions of every chunk',
])
/** A question may leave so much, or as much as one with a good answer: 23 KiB were measured, and 100 by good ones. */
const leftBytesMax = 64 * kib

for (const [name, use] of Object.entries(uses)) {
  test(`no answer costs ${name} much more time or memory than good ones do`, async (t) => {
    const server = await HostileProcess.start(t)
    const question = { origin: server.origin, clock: systemClock, world: t }
    const cpuMs = async (): Promise<number> => {
      const before = process.cpuUsage()
      for (let nth = 0; nth < questions; nth++) await asked(use, question)
      const { user, system } = process.cpuUsage(before)
      return (user + system) / 1_000
    }
    const goodMs = async (): Promise<number> => {
      await server.answerWith(good)
      return Math.min(await cpuMs(), await cpuMs(), await cpuMs())
    }
    await goodMs()
    const usualMs = await goodMs()
    for (const [shape, answer] of Object.entries(endless)) {
      if (bulk.has(shape)) continue
      await server.answerWith(answer)
      let ratio = (await cpuMs()) / usualMs
      if (ratio > costRatioMax) ratio = Math.min(await cpuMs(), await cpuMs()) / usualMs
      t.diagnostic(`${shape}: ${ratio.toFixed(1)}`)
      assert(ratio <= costRatioMax, `${shape} costs ${ratio} times as much`)
    }

    const answers = Object.values({ ...brokenOff, ...notHttp, ...refusals })
    const leftBy = async (isGood: boolean): Promise<number> => {
      const before = heldMemory()
      for (const answer of answers) {
        await server.answerWith(isGood ? good : answer)
        await asked(use, question)
      }
      await settle()
      return (heldMemory() - before) / answers.length
    }
    await leftBy(false)
    const [left, usual] = [await leftBy(false), await leftBy(true)]
    t.diagnostic(`bytes left: ${left}, by good answers ${usual}`)
    assert(left < Math.max(usual, leftBytesMax), `${left} bytes, and ${usual} by good ones`)
  })
}
