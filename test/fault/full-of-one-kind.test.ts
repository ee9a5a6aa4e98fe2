import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { onlyWithAll } from '../support/kit/drawn-runs.ts'
import { startServer } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'
import { SimulatedDisk } from './power/simulated-disk.ts'

/** While the disk has no room for some files, pushes fail, and the shard is opened again and again. */
const outageMs = 3_000
const pushedText = 'x'.repeat(200_000)

const alike = 'tables are files like these: their writes fail, and the shard is opened again'

for (const fault of ['full for logs', 'full for tables', 'full for lists'] as const) {
  test(`while the disk is ${fault} alone, every poll gets what is there`, {
    skip: fault === 'full for lists' && onlyWithAll(alike),
  }, async (t) => {
    const place = mkdtempSync(join(tmpdir(), 'postbote-disk-'))
    const disk = new SimulatedDisk(place)
    const first = await startServer(t, {
      workers: 1,
      flags: ['--shards', '1', '--local'],
      env: disk.env,
      dir: disk.root,
    })
    t.after(() => rmSync(place, { recursive: true, force: true }))
    const bots = await Promise.all(Array.from({ length: 401 }, () => first.register()))
    for (const { botId } of bots) await first.push(botId, { message: { text: 'there' } })
    const [pusher, ...others] = bots
    assert(pusher !== undefined)
    await first.stop()
    const server = await first.restart()
    disk.fail(fault)
    const outage = { isOver: false }
    const pushing = (async () => {
      while (!outage.isOver) {
        const path = `/v1/bots/${pusher.botId}/updates`
        await server.admin('POST', path, { message: { text: pushedText } }).catch(() => undefined)
      }
    })()
    const statuses: number[] = []
    const empty: number[] = []
    // Nobody has polled them since the start, so what is there must be read from disk.
    const polling = others.map(async ({ botId, token }, nth) => {
      await wait((nth / others.length) * outageMs)
      const { status, body } = await server.call(token, 'getUpdates')
      statuses.push(status)
      if (status === 200 && body.result.length === 0) empty.push(botId)
    })
    await wait(outageMs - 500)
    disk.fail('none')
    await Promise.all(polling)
    outage.isOver = true
    await pushing
    t.diagnostic(
      `${statuses.length} polls, ${statuses.filter((each) => each !== 200).length} refused, ${empty.length} empty, reopened ${server.output().match(/opened again/g)?.length ?? 0}, not ${server.output().match(/could not be reopened/g)?.length ?? 0}`,
    )
    assert.deepEqual(
      statuses.filter((status) => status !== 200),
      [],
    )
    assert.deepEqual(empty, [])
    await until(
      async () => (await server.admin('GET', '/readyz')).body.poisoned_shards === undefined,
    )
  })
}
