/** Random steps in the life of a queue. */
import fc from 'fast-check'

export type Step =
  | {
      readonly kind: 'push'
      readonly count: number
      readonly ttlS: number
      readonly isWaited: boolean
    }
  | AdvanceStep
  | { readonly kind: 'page'; readonly limit: number }
  | { readonly kind: 'pass'; readonly seconds: number }
  | { readonly kind: 'expire' | 'reopen' | 'reload' }
  | WebhookStep

export interface AdvanceStep {
  readonly kind: 'confirm' | 'keepNewest' | 'drop'
  readonly share: number
}

/** Steps of a webhook's dispatcher, and steps that happen beside it. */
export type WebhookStep =
  | { readonly kind: 'deliver'; readonly shares: readonly number[] }
  | { readonly kind: 'read'; readonly share: number; readonly limit: number }
  | { readonly kind: 'finish'; readonly shares: readonly number[]; readonly isLost: boolean }
  | { readonly kind: 'readAll' | 'letGo' | 'release' | 'oldest' }

const share = fc.double({ min: 0, max: 1, noNaN: true })
export const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('push' as const),
      count: fc.integer({ min: 1, max: 40 }),
      ttlS: fc.constantFrom(5, 60, 86_400),
      isWaited: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('confirm', 'keepNewest', 'drop'), share }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('page' as const),
      limit: fc.constantFrom(1, 7, 100),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('deliver' as const),
      shares: fc.array(share, { minLength: 1, maxLength: 5 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('pass' as const),
      seconds: fc.constantFrom(1, 10, 100),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      share,
      limit: fc.constantFrom(1, 7, 100),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('finish' as const),
      shares: fc.array(share, { minLength: 1, maxLength: 20 }),
      isLost: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constantFrom('expire', 'reopen', 'reload') }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom('readAll', 'letGo', 'release', 'oldest') }),
  },
)

const webhookKinds: readonly string[] = [
  'deliver',
  'read',
  'readAll',
  'finish',
  'letGo',
  'release',
  'oldest',
] satisfies readonly WebhookStep['kind'][]

export function isWebhookStep(step: Step): step is WebhookStep {
  return webhookKinds.includes(step.kind)
}
