import assert from 'node:assert/strict'
import { test } from 'node:test'
import { barChart } from '../../../bench/chart.ts'

const options = { title: 'CPU', unit: 'x', isLowerBetter: true }

test('bars are proportional to their values, and the longest label fits into the chart', () => {
  const bars = [
    { label: 'one', value: 2, target: undefined },
    { label: 'other', value: 1, target: 4 },
  ]
  const widths = [...barChart({ ...options, bars }).matchAll(/<rect [^>]*width="([\d.]+)"/g)]
  const [one, other] = widths.map(([, width]) => Number(width))
  assert.equal(one, 2 * Number(other))
  // The target of 4 fills it, twice as far as the bar of 2.
  assert.equal(one, 210)
})

function classOf(value: number, isLowerBetter: boolean): string | undefined {
  const bars = [{ label: 'a', value, target: 3 }]
  return /<rect class="(\w+)"/.exec(barChart({ ...options, isLowerBetter, bars }))?.[1]
}

test('a bar that misses its target has another color, whichever direction is better', () => {
  assert.equal(classOf(2.9, true), 'bar')
  assert.equal(classOf(3.1, true), 'missed')
  assert.equal(classOf(2.9, false), 'missed')
  assert.equal(classOf(3.1, false), 'bar')
})

test('a chart has colors for light and dark pages, and no label can end it', () => {
  const svg = barChart({
    ...options,
    bars: [{ label: '<b>&', value: 0, target: undefined }],
  })
  assert.match(svg, /prefers-color-scheme: dark/)
  assert.match(svg, />&lt;b&gt;&amp;</)
  assert.doesNotMatch(svg, /NaN|Infinity/)
})
