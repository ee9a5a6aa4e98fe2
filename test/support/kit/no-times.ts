import { type AllHistograms, forEachHistogram } from '../../../src/kit/histograms.ts'

/** Histograms without observations. */
export const noTimes: AllHistograms = forEachHistogram(({ boundsMs }) => ({
  counts: [...boundsMs.map(() => 0), 0],
  sumMs: 0,
}))
