/**
 * GET /v1/nodes: the nodes of the cluster, or the one server, with their workers and shards. Each node describes itself,
 * from its shared memory; any of its workers can. So a worker that is down or hangs hides nothing, and on one machine no
 * other worker is asked.
 *
 * A member of the cluster that does not answer is listed with what the database says about it.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ClusterMember, NodeReport } from '../process/node-report.ts'
import type { ResultOf } from '../api/operation.ts'
import { serverOperations } from '../features/server/server-operations.ts'
import { addOperation } from '../private-api/add-operations.ts'
import { fieldValues } from '../private-api/field-values.ts'
import { type AskingRoute, askWorkers } from '../links/ask/ask-workers.ts'
import { addAnswers, asks } from '../links/ask/question.ts'
import type { PrivateApiParts, ShardPlaces } from '../private-api/private-api-parts.ts'

type NodeListJson = ResultOf<typeof serverOperations.listNodes>
type NodeJson = NodeListJson['nodes'][number]

type Options = Pick<PrivateApiParts, 'ownNode' | 'shards'> & {
  readonly routes: Pick<ShardPlaces, 'members'>
} & AskingRoute

export const nodeQuestions = {
  /** What is the state of its node? */
  node: asks<undefined, NodeReport>('node'),
}

export function addNodeRoutes(app: FastifyInstance, options: Options): void {
  addAnswers(app, nodeQuestions, { node: () => options.ownNode() }, options)
  addOperation(app, serverOperations.listNodes, ({ request }) => listNodes(options, request))
}

async function listNodes(options: Options, request: FastifyRequest): Promise<NodeListJson> {
  const { shards } = options
  const owners = options.ownersOf(request)
  const others = owners.others.filter((owner) => owners.isOtherNode(owner))
  const answers = { node: () => options.ownNode() }
  const asked = { ...options, answers, owners: { ...owners, others } }
  const reports = await askWorkers(asked, nodeQuestions, 'node', undefined)
  const nodes = new Map<string, NodeJson>()
  const reported: number[] = []
  for (const { answer } of reports) {
    if (!nodes.has(answer.name)) reported.push(...answer.shards.map(({ shard }) => shard))
    nodes.set(answer.name, nodeJson(answer))
  }
  for (const member of options.routes.members()) {
    if (nodes.has(member.name)) continue
    reported.push(...member.shards)
    nodes.set(member.name, silentJson(member))
  }
  const sorted = [...nodes].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, node]) => node)
  return { nodes: sorted, missing_shards: fieldValues.missingShards(shards, reported) }
}

function nodeJson({ heartbeatAgeMs, clockSkewMs, workers, ...node }: NodeReport): NodeJson {
  return {
    name: node.name,
    state: node.state,
    version: node.version,
    uptime: node.uptimeS,
    heartbeat_age_ms: heartbeatAgeMs ?? null,
    clock_skew_ms: clockSkewMs ?? null,
    workers: workers.map((worker) => ({
      worker: worker.worker,
      state: worker.state,
      pid: worker.pid ?? null,
      generation: worker.generation,
      restarts: worker.restarts,
      uptime: worker.uptimeS ?? null,
      event_loop_delay_p99_ms: worker.loopDelayP99Us / 1_000,
      event_loop_delay_max_ms: worker.loopDelayMaxUs / 1_000,
    })),
    shards: node.shards,
  }
}

function silentJson(member: ClusterMember): NodeJson {
  return {
    name: member.name,
    // One whose workers do not serve yet cannot answer.
    state: member.state === 'starting' ? 'starting' : 'unreachable',
    version: null,
    uptime: null,
    heartbeat_age_ms: null,
    clock_skew_ms: null,
    workers: [],
    shards: member.shards.map((shard) => ({ shard, worker: null, state: 'unknown' })),
  }
}
