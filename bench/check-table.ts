/** What the regression gate found, as text. */
import { markdownTable } from './case-table.ts'
import { isPassed, type RatioChange, worseAbove } from './compare-ratios.ts'

export function checkTable(changes: readonly RatioChange[]): string {
  const headings = ['case', 'yardstick', 'baseline', 'now', 'change', 'result']
  const rows = changes.map(({ name, against, before, now, verdict, error }) => [
    name,
    against,
    ratioText(before),
    ratioText(now),
    before === undefined || now === undefined ? '' : changeText(now / before),
    error === undefined ? verdict : `${verdict}: ${error}`,
  ])
  return [
    'CPU of an operation, yardstick = 1',
    '',
    ...markdownTable([headings, ...rows]),
    '',
    summary(changes),
    '',
  ].join('\n')
}

function summary(changes: readonly RatioChange[]): string {
  const percent = Math.round(100 * (worseAbove - 1))
  if (isPassed(changes)) return `passed: no case is more than ${percent} % worse than the baseline`
  const named = (verdict: RatioChange['verdict']): string =>
    changes.flatMap((each) => (each.verdict === verdict ? each.name : [])).join(', ')
  const worse = named('worse')
  const failed = named('failed')
  return [
    ...(worse === '' ? [] : [`more than ${percent} % worse than the baseline: ${worse}`]),
    ...(failed === '' ? [] : [`failed: ${failed}`]),
  ].join('; ')
}

function ratioText(ratio: number | undefined): string {
  return ratio === undefined ? '' : `${ratio.toFixed(2)} x`
}

function changeText(factor: number): string {
  const percent = 100 * (factor - 1)
  return `${percent < 0 ? '' : '+'}${percent.toFixed(0)} %`
}
