import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Kind, refused } from '../../../src/config/config-values.ts'
import { duration, span } from '../../../src/config/duration.ts'
import { timePoint } from '../../../src/config/time-point.ts'
import { utcText } from '../../../src/kit/clock.ts'

/** 2026-11-23 08:15:30Z, a Monday. */
const nowMs = 1_795_421_730_500
const clock = { nowMs: () => nowMs }
const kind = timePoint(clock)

function shown(text: string, of: Kind<number> = kind): string {
  const seconds = of.parse(text)
  return seconds === refused ? `refused, ${of.whyRefused?.(text)}` : utcText(seconds * 1_000)
}

test('a time is read as people write it, and as commands print it', () => {
  const expected = {
    now: '2026-11-23 08:15:30Z',
    '10m': '2026-11-23 08:05:30Z',
    '90s': '2026-11-23 08:14:00Z',
    '2h': '2026-11-23 06:15:30Z',
    '3d': '2026-11-20 08:15:30Z',
    '12 s ago': '2026-11-23 08:15:18Z',
    '3 min ago': '2026-11-23 08:12:30Z',
    today: '2026-11-23 00:00:00Z',
    'today 09:30': '2026-11-23 09:30:00Z',
    yesterday: '2026-11-22 00:00:00Z',
    'Yesterday 14:00': '2026-11-22 14:00:00Z',
    '07:30': '2026-11-23 07:30:00Z',
    '14:00': '2026-11-22 14:00:00Z',
    '14:00:59': '2026-11-22 14:00:59Z',
    '2026-11-20': '2026-11-20 00:00:00Z',
    '2026-11-20 08:15': '2026-11-20 08:15:00Z',
    '2026-11-20 08:15:00Z': '2026-11-20 08:15:00Z',
    '2026-11-20T08:15:00.250Z': '2026-11-20 08:15:00Z',
    '2026-11-20T08:15:00+02:00': '2026-11-20 06:15:00Z',
    '2026-11-20T08:15:00-0330': '2026-11-20 11:45:00Z',
    '1795259014': '2026-11-21 11:03:34Z',
    '0': '1970-01-01 00:00:00Z',
  }
  assert.deepEqual(
    Object.fromEntries(Object.keys(expected).map((text) => [text, shown(text)])),
    expected,
  )
})

test('a time that cannot be meant is refused with what it was taken for', () => {
  const expected = {
    '1700000000000': 'refused, which looks like milliseconds: did you mean 1700000000?',
    '17000000000000': 'refused, which looks like milliseconds',
    '1700000000000000': 'refused, which looks like microseconds: did you mean 1700000000?',
    '1700000000000000000': 'refused, which looks like nanoseconds: did you mean 1700000000?',
    '99999999999': 'refused, which is 5138-11-16 09:46:39Z, and that is still to come',
    '2099-01-01': 'refused, which is 2099-01-01 00:00:00Z, and that is still to come',
    '1999-12-31': 'refused, which is 1999-12-31 00:00:00Z, before any bot',
    '600':
      'refused, which is 1970-01-01 00:10:00Z in Unix seconds: did you mean 600s, which is before now?',
    '999999999d': 'refused, which is too far from now',
  }
  assert.deepEqual(
    Object.fromEntries(Object.keys(expected).map((text) => [text, shown(text)])),
    expected,
  )
})

test('what is no time is refused, and nothing is guessed', () => {
  const none = [
    '',
    ' ',
    'tomorrow',
    '10x',
    '-10m',
    '1.5.5h',
    '24:00',
    '8:60',
    'today 25:00',
    '10 m m',
  ]
  const dates = ['2026-02-30', '2026-13-01', '2026-1-1', '2026-11-20T25:00', '2026-11-20 08:15 CET']
  const odd = ['yesterday14:00', '1e9', '0x10', 'NaN', '\u0663m', 'ago', '10m\u001b[2J']
  for (const text of [...none, ...dates, ...odd]) {
    assert.equal(kind.parse(text), refused, text)
    assert.equal(kind.whyRefused?.(text), undefined, text)
  }
})

test('where only what has been counts, no later time is taken', () => {
  const past = timePoint(clock, 'now')
  assert.equal(shown('now', past), '2026-11-23 08:15:30Z')
  assert.equal(
    shown('today 09:30', past),
    'refused, which is 2026-11-23 09:30:00Z, and that is still to come',
  )
})

test('a duration is seconds, or a number with a unit, within its bounds', () => {
  const ttl = span(1, 604_800)
  const texts = [
    '90',
    '90s',
    '10m',
    '2h',
    '7d',
    '0',
    '8d',
    '604801',
    '1w',
    '10 m',
    '-1',
    '1.5h',
    '1.5s',
    '',
  ]
  assert.deepEqual(
    texts.map((text) => ttl.parse(text)),
    [
      90,
      90,
      600,
      7_200,
      604_800,
      ...Array.from({ length: 4 }, () => refused),
      600,
      refused,
      5_400,
      refused,
      refused,
    ],
  )
  assert.equal(ttl.expected, 'a duration from 1s to 7d, such as 30s, 10m, 2h or 7d')
  const retain = duration({ maxMs: 86_400_000 })
  assert.deepEqual(
    ['0', '90', '1d', '25h'].map((text) => retain.parse(text)),
    [0, 90_000, 86_400_000, refused],
  )
})
