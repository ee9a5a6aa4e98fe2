/**
 * Connections: a few complete requests one after the other, perhaps followed by a broken one, with ways to write and end them.
 */
import fc from 'fast-check'
import { brokenCalls, cutCalls, editedCalls } from './broken-calls.ts'
import { knownCalls } from './known-calls.ts'
import { oddCalls } from './odd-calls.ts'
import { privateCalls } from './private-calls.ts'
import type { Conversation, Delivery, Finish, WireCase, World } from './wire-case.ts'

/** Longer conversations in single bytes would mostly wait. */
const singleBytesMax = 1_500
/** Each request in turn may be held for 3 s, so a longer conversation would exceed the deadline. */
const inTurnMax = 13

const delivery: fc.Arbitrary<Delivery> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<Delivery>({ kind: 'at once' }) },
  { weight: 6, arbitrary: fc.constant<Delivery>({ kind: 'in turn' }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('split' as const),
      pieceBytes: fc.constantFrom(40, 150, 333, 1_000),
    }),
  },
  { weight: 1, arbitrary: fc.constant<Delivery>({ kind: 'byte by byte' }) },
)
const finish = fc.constantFrom<Finish[]>(
  ...(['close', 'close', 'half-close', 'half-close at once', 'reset'] as const),
)

export function conversations(world: World): fc.Arbitrary<Conversation> {
  const known = knownCalls(world)
  const whole = fc.oneof({ weight: 2, arbitrary: known }, { weight: 3, arbitrary: oddCalls(world) })
  const botPath = fc.constantFrom(...world.loose.map(({ token }) => `/bot${token}/getMe`))
  const ofBots = conversationOf('bot', whole, botPath)
  const ofProducers = conversationOf(
    'private',
    privateCalls(world),
    fc.constantFrom('/healthz', ...world.loose.map(({ botId }) => `/v1/bots/${botId}`)),
  )
  return fc.oneof({ weight: 5, arbitrary: ofBots }, { weight: 1, arbitrary: ofProducers })
}

function conversationOf(
  listener: Conversation['listener'],
  whole: fc.Arbitrary<WireCase>,
  target: fc.Arbitrary<string>,
): fc.Arbitrary<Conversation> {
  const last = fc.oneof(
    { weight: 3, arbitrary: brokenCalls(target) },
    // A changed host might be resolved, and a changed verb might have responses with a body.
    {
      weight: 3,
      arbitrary: editedCalls(
        whole.filter(({ name, isHead }) => !name.startsWith('setWebhook') && isHead !== true),
      ),
    },
    { weight: 2, arbitrary: cutCalls(whole) },
  )
  return fc
    .record({
      cases: fc.oneof(
        { weight: 80, arbitrary: fc.array(whole, { maxLength: 12, size: 'max' }) },
        { weight: 1, arbitrary: fc.array(whole, { maxLength: 120, size: 'max' }) },
      ),
      ending: fc.oneof(last, fc.constant(null)),
      delivery,
      finish,
    })
    .map(({ cases, ending, delivery: how, finish: end }) => {
      const all = ending === null ? cases : [...cases, ending]
      const bytes = all.reduce((sum, each) => sum + each.bytes.length, 0)
      const isLong = how.kind === 'byte by byte' ? bytes > singleBytesMax : all.length > inTurnMax
      return { listener, cases: all, delivery: isLong ? { kind: 'at once' } : how, finish: end }
    })
}
