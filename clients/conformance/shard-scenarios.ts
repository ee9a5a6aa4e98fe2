/**
 * All scenarios: those of `scenarios.ts` at a server without `GET /v1/shards`, the same streams at a server that tells its
 * shards, and what may be wrong with what it tells (docs/use/client.md, "Streams and shards").
 */
import { plain, long, quick, scenarios, store } from './scenarios.ts'
import type { Scenario, ShardsAction, ShardsMap } from './scenario.ts'

const streamModes = ['stream', 'pushAll'] as const

/** The bots 101 and 103 are in the second group, 102 is in the first and 104 in the third. */
const map: ShardsMap = {
  shards: 8,
  groups: [
    [0, 1],
    [4, 5],
    [6, 7, 2, 3],
  ],
  version: 1,
}
/** After a move: each bot has another group, and 103 one of its own. */
const movedMap: ShardsMap = { shards: 8, groups: [[4], [7, 0, 1], [5, 6, 2, 3]], version: 2 }

function told(body: unknown): ShardsAction {
  return { status: 200, body }
}

/** The same streams at a server that tells its shards: each pair comes on the stream of its group. */
function atShards(scenario: Scenario): Scenario[] {
  const modes = streamModes.filter((mode) => scenario.modes.includes(mode))
  const name = `with shards: ${scenario.name}`
  const isReached = scenario.place === 'fake server' || scenario.place === 'TLS'
  if (modes.length === 0 || !isReached) return []
  return [{ ...scenario, name, modes, shardsAction: () => told(map), hints: map }]
}

/** A map that cannot be used: the client goes on with one stream, and says so once. */
function unusable(what: string, answer: ShardsAction): Scenario {
  return {
    ...plain,
    name: `a map of shards ${what}`,
    modes: streamModes,
    attemptsMax: 1,
    shardsAction: () => answer,
    retryCode: 'UNEXPECTED_ANSWER',
    retriesMax: 1,
  }
}

/** A server that has not got the call for this key: the client goes on with one stream, and nobody needs to know. */
function silent(status: number, code: string): Scenario {
  return {
    ...plain,
    name: `a server that answers ${status} for its shards`,
    modes: streamModes,
    attemptsMax: 1,
    shardsAction: () => ({ status, body: { error: { code, message: 'no' } } }),
  }
}

/** Texts of answers that have not the form of a map. */
const lies: Readonly<Record<string, unknown>> = {
  'that is null': null,
  'that is a list': [8],
  'without a version': { shards: 8, groups: map.groups },
  'without groups': { shards: 8, version: 1 },
  'with groups that are no lists': { ...map, groups: [0, 1, 2] },
  'with a number of shards that is no power of two': { ...map, shards: 12 },
  'with no shards': { ...map, shards: 0 },
  'with more shards than there can be': { ...map, shards: 512 },
  'with a shard in two groups': { ...map, groups: [[0, 1], [1]] },
  'with a shard twice in a group': { ...map, groups: [[0, 0], [1]] },
  'with a shard that there is not': { ...map, groups: [[0], [8]] },
  'with a shard below 0': { ...map, groups: [[0], [-1]] },
  'with half a shard': { ...map, groups: [[0], [1.5]] },
  'with a shard that is a text': { ...map, groups: [[0], ['1']] },
  'with a version that is a text': { ...map, version: '1' },
  'with a shard that is true': { ...map, groups: [[0], [true]] },
}

const atMaps: readonly Scenario[] = [
  ...Object.entries(lies).map(([what, body]) => unusable(what, told(body))),
  unusable('that is no JSON', told('<h1>Welcome</h1>')),
  unusable('that is larger than 1 MiB', told({ ...map, more: 'a'.repeat(2 * 2 ** 20) })),
  unusable('that is an error of another server', { status: 500, body: '<h1>Sorry</h1>' }),
  {
    ...unusable('that never comes', 'nothing'),
    retryCode: 'TIMEOUT',
    elapsedMs: { min: 1_900, max: 6_000 },
  },
  silent(403, 'KEY_LACKS_SCOPE'),
  silent(405, 'VERB_NOT_ALLOWED'),
  {
    ...plain,
    name: 'a map with one group needs one stream without a shard',
    modes: streamModes,
    attemptsMax: 1,
    connectionsMax: 2,
    shardsAction: () => told({ shards: 8, groups: [[0, 1, 2, 3, 4, 5, 6, 7]], version: 1 }),
  },
  {
    ...plain,
    name: 'a map without a group needs one stream without a shard',
    modes: streamModes,
    attemptsMax: 1,
    connectionsMax: 2,
    shardsAction: () => told({ shards: 8, groups: [], version: 1 }),
  },
  {
    ...plain,
    name: 'a map with fields that a later version adds',
    modes: streamModes,
    attemptsMax: 1,
    shardsAction: () => told({ ...map, epoch: 7 }),
    hints: map,
  },
  {
    ...plain,
    name: 'pairs of shards that are in no group come on a stream without a shard',
    modes: streamModes,
    attemptsMax: 1,
    connectionsMax: 4,
    shardsAction: () => told({ ...map, groups: [[0, 1], [4], [2]] }),
    hints: { ...map, groups: [[0, 1], [4], [2]] },
  },
  {
    ...plain,
    name: 'more groups than a stream has connections',
    modes: streamModes,
    count: 3_000,
    bots: Array.from({ length: 1_000 }, (_, at) => 1_000 + at),
    attemptsMax: 1,
    connectionsMax: 65,
    shardsAction: () =>
      told({ shards: 256, groups: Array.from({ length: 256 }, (_, shard) => [shard]), version: 1 }),
    hints: 'any',
  },
  {
    ...long,
    name: 'a map that changes each time a stream ends',
    modes: streamModes,
    retryCode: undefined,
    shardsAction: (nth) => told(nth % 2 === 1 ? map : movedMap),
    hints: 'any',
    action: ({ isTurn, attempt }) => (isTurn && attempt === 1 ? { kind: 'end' } : store),
  },
  {
    ...long,
    name: 'a map that changes each time a response is lost',
    modes: streamModes,
    shardsAction: (nth) => told(nth % 2 === 1 ? map : movedMap),
    hints: 'any',
    action: ({ isTurn, attempt }) =>
      isTurn && attempt === 1 ? { kind: 'cut', isStored: true, at: 'start' } : store,
  },
  {
    ...long,
    name: 'a map that changes, while results are slow',
    modes: streamModes,
    isLong: false,
    count: 2_000,
    job: { client: quick, stream: { pairsMax: 256 } },
    resultDelayMs: 20,
    retryCode: undefined,
    shardsAction: (nth) => told(nth % 2 === 1 ? map : movedMap),
    hints: 'any',
    action: ({ isTurn, attempt }) => (isTurn && attempt === 1 ? { kind: 'end' } : store),
  },
  {
    ...long,
    name: 'a map that comes and goes each time a stream ends',
    modes: streamModes,
    retryCode: undefined,
    shardsAction: (nth) => (nth % 2 === 1 ? told(map) : { status: 404, body: '' }),
    hints: 'any',
    action: ({ isTurn, attempt }) => (isTurn && attempt === 1 ? { kind: 'end' } : store),
  },
  {
    ...plain,
    name: 'a server that refuses streams with a shard',
    modes: streamModes,
    attemptsMax: 1,
    shardsAction: () => told(map),
    hints: 'any',
    requestAction: (_nth, shard) =>
      shard === undefined ? undefined : { code: 'BAD_REQUEST', status: 400 },
  },
]

/** Every scenario, by name. */
export const allScenarios: readonly Scenario[] = [
  ...scenarios,
  ...scenarios.flatMap(atShards),
  ...atMaps,
]
