import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AnswerMeter,
  interimResponsesMax,
  piecesTooSmall,
  tooManyInterim,
  tooMuchFraming,
} from '../../../../src/delivery/outgoing/answer-meter.ts'

const mib = 1_048_576

test('a body of any size passes in pieces of usual sizes, with the framing that they need', () => {
  const meter = new AnswerMeter()
  let raw = 5_000
  meter.begin(raw)
  for (let nth = 0; nth < 1_000_000; nth++) {
    raw += 64 + 6
    assert.equal(meter.addPiece(64), undefined)
    assert.equal(meter.framingOf(raw), undefined)
  }
})

test('a thousand tiny pieces pass, and no more, however large the rest is', () => {
  const meter = new AnswerMeter()
  meter.begin(0)
  assert.equal(meter.addPiece(50 * mib), undefined)
  let pieces = 0
  while (meter.addPiece(1) === undefined) pieces++
  assert.equal(pieces, 1_040)
  assert.equal(meter.addPiece(1), piecesTooSmall)
})

test('framing may have a mebibyte, and an eighth of the body', () => {
  const meter = new AnswerMeter()
  meter.begin(7)
  assert.equal(meter.framingOf(7 + mib), undefined)
  assert.equal(meter.framingOf(8 + mib), tooMuchFraming)
  meter.addPiece(8 * mib)
  assert.equal(meter.framingOf(7 + 10 * mib), undefined)
  assert.equal(meter.framingOf(8 + 10 * mib), tooMuchFraming)
})

test('interim responses are counted, and the next answer begins anew', () => {
  const meter = new AnswerMeter()
  meter.begin(0)
  for (let nth = 0; nth < interimResponsesMax; nth++) assert.equal(meter.addInterim(), undefined)
  assert.equal(meter.addInterim(), tooManyInterim)
  meter.begin(mib)
  assert.deepEqual([meter.addInterim(), meter.weight], [undefined, 0])
})
