/**
 * The responses of the private API that the page uses, as the table of operations declares them. The page runs in a browser,
 * so it takes only the types of the table.
 */
import type { ApiOperations } from '../../modules/api-operations.ts'
import type { ResultOf } from '../../api/operation.ts'

/** The result of a call, by its id. */
export type ResultShape<Id extends keyof ApiOperations> = ResultOf<ApiOperations[Id]>

export type SummaryShape = ResultShape<'getSummary'>
type Node = ResultShape<'listNodes'>['nodes'][number]
/** A node of an earlier version does not tell the difference of its clock. */
export type NodeShape = Omit<Node, 'clock_skew_ms'> & Partial<Pick<Node, 'clock_skew_ms'>>
export type WorkerShape = NodeShape['workers'][number]
export type NodeShardShape = NodeShape['shards'][number]
export type BotListShape = ResultShape<'listBots'>
export type ListedBotShape = BotListShape['bots'][number]
export type BotShape = ResultShape<'getBot'>
type AttemptOfServer = ResultShape<'listAttempts'>['attempts'][number]
export type QueueShape = BotShape['test']
/** A server of an earlier version tells no headers. */
export type AttemptShape = Omit<AttemptOfServer, 'response_headers'> &
  Partial<Pick<AttemptOfServer, 'response_headers'>>
export type ShownHeaderShape = NonNullable<AttemptOfServer['response_headers']>[number]
export type RequestShape = NonNullable<ResultShape<'listAttempts'>['request']>
export type EndpointCheckShape = ResultShape<'checkWebhook'>
export type UpdateShape = ResultShape<'listUpdates'>['updates'][number]
export type WholeUpdateShape = ResultShape<'getUpdate'>
export type ReplayShape = ResultShape<'cancelReplay'>
export type ServerHistoryShape = ResultShape<'getServerHistory'>
export type RecordedCallShape = ResultShape<'listAudit'>['calls'][number]
type History = ResultShape<'getHistory'>
/** A worker of an earlier version does not count what waits, nor what polls get. */
type AddedHistory = 'pending' | 'fetched' | 'confirmed'
export type HistoryShape = Omit<History, AddedHistory> & Partial<Pick<History, AddedHistory>>
export type DeadLetterShape = ResultShape<'listDeadLetters'>['dead_letters'][number]
export type AllDeadReasonsShape = ResultShape<'sumAllDeadLetters'>
export type DeadGroupShape = AllDeadReasonsShape['groups'][number]
export type SigningKeyShape = ResultShape<'listSigningKeys'>['signing_keys'][number]
export type ReadinessShape = ResultShape<'checkReadiness'>
export type DamageShape = NonNullable<ReadinessShape['broken_shards']>[number]
export type RightsShape = ResultShape<'getSession'>
export type KeyShape = ResultShape<'listKeys'>['keys'][number]
export type IssuedKeyShape = ResultShape<'createKey'>
/** What the response to a change of a key says about the workers that could not be told. */
export type KeyChangeShape = Pick<ResultShape<'revokeKey'>, 'unreached_workers'>
