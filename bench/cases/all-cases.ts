/** The cases in the order in which they run, in the groups in which they are shown. */
import type { CaseGroup } from '../contestant.ts'
import { abuseCase } from './abuse.ts'
import { backlogCases } from './backlog.ts'
import { clusterCases } from './cluster.ts'
import { clusterKeptCase } from './cluster-kept.ts'
import { connectCases } from './connect.ts'
import { fairnessCases } from './fairness.ts'
import { fleetCase } from './fleet.ts'
import { floorCase } from './floor.ts'
import { forwardedCases } from './forwarded.ts'
import { gzipCase } from './gzip.ts'
import { holdsCase } from './holds.ts'
import { idleCase, idleForwardedCase } from './idle.ts'
import { idleRelaysCases } from './idle-relays.ts'
import { ingestCases } from './ingest.ts'
import { ingestPoolCases } from './ingest-pool.ts'
import { latencyCase } from './latency.ts'
import { peerCases } from './peers.ts'
import { peersWebhookCase } from './peers-webhook.ts'
import { pollCases } from './poll.ts'
import { producerClientCase } from './producer-client.ts'
import { pushCases } from './push.ts'
import { pushKeyCase } from './push-key.ts'
import { scalingCases } from './scaling.ts'
import { tlsCases } from './tls.ts'
import { webhookCases } from './webhook.ts'

export const caseGroups: readonly CaseGroup[] = [
  {
    name: 'ingest',
    title: 'Ingest',
    cases: [...ingestCases, floorCase, ...ingestPoolCases, ...pushCases, pushKeyCase],
  },
  { name: 'producer', title: 'The client for producers', cases: [producerClientCase] },
  { name: 'poll', title: 'getUpdates', cases: [...pollCases, gzipCase, ...forwardedCases] },
  { name: 'tls', title: 'TLS from files', cases: tlsCases },
  { name: 'latency', title: 'From push to poll', cases: [latencyCase] },
  { name: 'webhook', title: 'Webhooks', cases: webhookCases },
  { name: 'connect', title: 'A connection for each request', cases: connectCases },
  {
    name: 'idle',
    title: 'Waiting polls',
    cases: [idleCase, idleForwardedCase, ...idleRelaysCases],
  },
  { name: 'backlog', title: 'A deep backlog', cases: [holdsCase, ...backlogCases] },
  { name: 'fleet', title: 'Questions about all bots', cases: [fleetCase] },
  { name: 'scaling', title: 'Two workers and one', cases: scalingCases },
  { name: 'cluster', title: 'Shards in a database', cases: [...clusterCases, clusterKeptCase] },
  { name: 'peers', title: 'Beside other queues', cases: [...peerCases, peersWebhookCase] },
  { name: 'abuse', title: 'Beside a hostile client', cases: [abuseCase] },
  { name: 'fairness', title: 'Beside a sick bot', cases: fairnessCases },
]
