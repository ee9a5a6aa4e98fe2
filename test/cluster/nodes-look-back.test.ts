/** What nodes keep in one database, updates that have left their queues and the audit, while shards move between them and back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startCluster, type TestCluster } from '../support/server/cluster.ts'
import { botsOfAllShards, databaseWorld, wait } from '../support/server/database.ts'
import { postbote } from '../support/programs/postbote.ts'
import type { RegisteredBot, Server } from '../support/server/server.ts'
import { until } from '../support/kit/until.ts'

const world = databaseWorld()
const skip = world.obstacle
/** Shard 0, which has the audit, belongs to the second one. */
const [firstNode, secondNode] = ['b', 'a']
/** What one queue may keep, and what all queues of both nodes may. */
const queueBytesMax = 4_096
const totalBytesMax = 16_384
/** Between two calls of the audit. */
const pauseMs = 20
const text = 'x'.repeat(250)

interface Row {
  readonly update_id: number
  readonly state: string
}

/** Returns what can be looked at of a bot, as a node sees it. */
async function rowsAt(server: Server, { botId }: RegisteredBot): Promise<readonly Row[]> {
  const answer = await server.admin('GET', `/v1/bots/${botId}/updates?limit=1000`)
  assert.equal(answer.status, 200, answer.text)
  return answer.body.updates
}

/** Pushes updates to a bot, which confirms all but the last one. */
async function confirmSome(server: Server, bot: RegisteredBot, count: number): Promise<void> {
  const pair = `{"bot_id":${bot.botId}}\n{"message":{"text":"${text}"}}\n`
  const pushed = await server.admin('POST', '/v1/updates', pair.repeat(count))
  assert.equal(pushed.status, 200, pushed.text)
  const last: Row = JSON.parse(pushed.text.trim().split('\n').at(-1) ?? '{}')
  const polled = await server.call(bot.token, 'getUpdates', { offset: last.update_id })
  assert.equal(polled.status, 200, polled.text)
  await until(async () => {
    const rows = await rowsAt(server, bot)
    return rows.filter(({ state }) => state === 'pending').length === 1
  })
}

async function keptBytesOf(server: Server, { botId }: RegisteredBot): Promise<number> {
  return (await server.admin('GET', `/v1/bots/${botId}/retention`)).body.kept_bytes
}

/** Pauses and resumes bots, each call at any node, and remembers which calls were answered. */
class Changes {
  readonly #cluster: TestCluster
  readonly #answered = new Map<number, string[]>()
  readonly #running: Promise<unknown>
  #isOver = false

  constructor(cluster: TestCluster, bots: readonly RegisteredBot[]) {
    this.#cluster = cluster
    this.#running = Promise.all(bots.map((bot) => this.#change(bot)))
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#running
  }

  /** Each answered call has one row, and the rows of a bot are in the order of its calls. */
  async check(node: Server): Promise<void> {
    for (const [botId, answered] of this.#answered) {
      assert(answered.length > 10)
      const requestIds = async (): Promise<readonly string[]> => {
        const { body } = await node.admin('GET', `/v1/audit?bot=${botId}&limit=1000`)
        const ids = body.calls.map(({ request_id: id }: { readonly request_id: string }) => id)
        return ids.filter((id: string) => id.startsWith(`${botId}-`)).toReversed()
      }
      // What was answered while shard 0 was away is stored a moment later.
      await until(async () => (await requestIds()).length >= answered.length)
      const found = await requestIds()
      assert.equal(new Set(found).size, found.length)
      assert.deepEqual(
        answered.filter((id) => !found.includes(id)),
        [],
      )
      const numbers = found.map((id) => Number(id.split('-')[1]))
      assert.deepEqual(
        numbers,
        numbers.toSorted((one, other) => one - other),
      )
    }
  }

  async #change({ botId }: RegisteredBot): Promise<void> {
    const answered: string[] = []
    this.#answered.set(botId, answered)
    for (let nth = 0; !this.#isOver; nth++) {
      const requestId = `${botId}-${nth}`
      const path = `/v1/bots/${botId}/${nth % 2 === 0 ? 'pause' : 'resume'}`
      const headers = { 'x-request-id': requestId }
      const { status } = await this.#cluster.any().admin('POST', path, undefined, headers)
      if (status === 200) answered.push(requestId)
      await wait(pauseMs)
    }
  }
}

test('kept updates and the audit are whole after shards have moved to another node, after reloads, and after the moves back; both nodes trim', {
  skip,
}, async (t) => {
  const cluster = await startCluster(t, await world.database('kept'), {
    nodes: [firstNode],
    flags: [
      '--retain=1h',
      `--retain-bytes=${queueBytesMax}`,
      `--retain-total-bytes=${totalBytesMax}`,
    ],
  })
  const bots = await botsOfAllShards(cluster.any())
  await Promise.all(bots.map((bot) => confirmSome(cluster.any(), bot, 3)))
  const rowsOf = () => Promise.all(bots.map((bot) => rowsAt(cluster.any(), bot)))
  const rows = await rowsOf()
  const changes = new Changes(cluster, (await botsOfAllShards(cluster.any())).slice(0, 3))
  const ownersOf = async (): Promise<string> => [...new Set(await cluster.owners())].join()

  await cluster.start(secondNode)
  await until(async () => (await cluster.owners()).join('') === 'abbabbaa', 60_000)
  assert.deepEqual(await rowsOf(), rows)
  for (const node of cluster.nodes) {
    const { code, output } = await postbote(['reload', '--dir', node.dir])
    assert.equal(code, 0, output)
  }
  assert.deepEqual(await rowsOf(), rows)
  // The bound of a queue, and that of the server, of which each node has a share for its shards.
  const fresh = (await botsOfAllShards(cluster.any())).slice(0, 2)
  for (let round = 0; round < 6; round++) {
    await Promise.all(fresh.map((bot) => confirmSome(cluster.any(), bot, 10)))
  }
  for (const bot of fresh) {
    await until(async () => (await keptBytesOf(cluster.any(), bot)) <= 1.3 * queueBytesMax)
    assert((await keptBytesOf(cluster.any(), bot)) > 0)
  }

  const before = await rowsOf()
  const leaving = cluster.forget(secondNode)
  await cluster.database.postgres.query(
    `UPDATE node SET state = 'leaving' WHERE name = '${secondNode}'`,
    cluster.database.name,
  )
  assert.equal(await leaving.ended(), 0)
  assert.equal(await ownersOf(), firstNode)
  assert.deepEqual(await rowsOf(), before)
  await changes.end()
  await changes.check(cluster.node(firstNode))
  const all = [...bots, ...fresh]
  for (const bot of bots) await confirmSome(cluster.any(), bot, 12)
  await until(async () => {
    const bytes = await Promise.all(all.map((bot) => keptBytesOf(cluster.any(), bot)))
    return bytes.reduce((sum, each) => sum + each) <= 1.3 * totalBytesMax
  })
})
