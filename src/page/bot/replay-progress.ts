/** How far a replay is. Pure. */
import { formatCount } from '../elements/format.ts'
import type { ReplayShape } from '../frame/shapes.ts'

export interface ReplayProgress {
  /** From 0 to 1; undefined if it is not known how many updates there are. */
  readonly share: number | undefined
  /** A sentence without its end. */
  readonly text: string
}

export function replayProgress({
  total,
  replayed,
  skipped,
  reason,
  rate,
  state,
}: Pick<
  ReplayShape,
  'total' | 'replayed' | 'skipped' | 'reason' | 'rate' | 'state'
>): ReplayProgress {
  const { filtered, too_large: tooLarge, gone } = skipped
  const passed = replayed + filtered + tooLarge
  const of = total === null ? '' : ` of ${formatCount(total)}`
  const notes = [
    `${formatCount(replayed)}${of} delivered again`,
    ...(filtered > 0 ? [`${formatCount(filtered)} of types that the bot does not want`] : []),
    ...(tooLarge > 0 ? [`${formatCount(tooLarge)} too large`] : []),
    ...(gone > 0 ? [`${formatCount(gone)} no longer kept`] : []),
    ...(state === 'running' ? [`${formatCount(rate)} per second at most`] : []),
    ...(reason === null ? [] : [reason]),
  ]
  if (state === 'done') return { share: 1, text: notes.join(' · ') }
  const share = total === null ? undefined : total === 0 ? 1 : Math.min(passed / total, 1)
  return { share, text: notes.join(' · ') }
}
