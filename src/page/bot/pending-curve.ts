/**
 * A curve of the updates that have waited for a bot: of the last hour as far as the server has counted them, which it does while a
 * bot is in trouble, and of what the page has seen since then.
 */
import { type BotQueueName, ofQueue } from '../frame/page-calls.ts'
import { formatCount } from '../elements/format.ts'
import type { PageContext } from '../frame/page-context.ts'
import type { PagePart } from '../elements/page-part.ts'
import type { HistoryShape } from '../frame/shapes.ts'
import { sparkline, sparkPointsMax } from '../elements/sparkline.ts'

/** The server counts once a minute. */
const pauseMs = 60_000

/** @returns the curve, which is shown the number of now */
export function pendingCurve(
  { api, clock, poll }: Pick<PageContext, 'api' | 'clock' | 'poll'>,
  queue: BotQueueName,
): PagePart<number> {
  const curve = sparkline()
  let counted: readonly number[] = []
  let seen: readonly number[] = []
  let lastMs = 0
  poll(pauseMs, async () => {
    const history: HistoryShape = await api.call('getHistory', ofQueue(queue, {}))
    const known = (history.pending ?? []).filter((count) => count !== null)
    // The present minute is not over, and the page knows more of it.
    counted = known.slice(0, -1)
    if (counted.length > 0) seen = seen.slice(-1)
    draw()
  })
  const draw = (): void => {
    const points = [...counted, ...seen].slice(-sparkPointsMax)
    curve.show(points)
    curve.root.title = `From ${formatCount(points[0])} to ${formatCount(points.at(-1))}`
  }
  const show = (pending: number): void => {
    // What is shown twice at once is one point.
    const isNew = clock.nowMs() - lastMs >= pointMs
    if (isNew) lastMs = clock.nowMs()
    seen = [...(isNew ? seen : seen.slice(0, -1)), pending].slice(-sparkPointsMax)
    draw()
  }
  return { root: curve.root, show }
}

/** Chosen: a curve of some minutes for a bot that is well. */
const pointMs = 3_000
