import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { gatherPieces, smallPieceBytes } from '../../../../src/admission/budgets/gather-pieces.ts'
import { bodyPiecesPerCharge } from '../../../../src/http/limits.ts'

function bodyOf() {
  const counts = { charged: 0, pauses: 0 }
  // oxlint-disable-next-line no-unsafe-type-assertion -- only this is used
  const socket = { pause: () => (counts.pauses += 1) } as unknown as Socket
  const readable = new Readable({ read: () => undefined, highWaterMark: 2_000 })
  const body = Object.assign(readable, { socket })
  gatherPieces(body, (pieces) => (counts.charged += pieces))
  return { body, counts }
}

test('small pieces of one read are kept as one and charged, and all others are passed on as they are', async () => {
  const { body, counts } = bodyOf()
  const large = Buffer.alloc(smallPieceBytes, 'l')
  for (let nth = 0; nth < bodyPiecesPerCharge; nth++) body.push(Buffer.from('s'))
  body.push(large)
  body.push(Buffer.from('e'))
  body.push(null)
  const pieces: Buffer[] = []
  body.on('data', (piece: Buffer) => pieces.push(piece))
  await once(body, 'end')
  assert.deepEqual(pieces.map(String), ['s'.repeat(bodyPiecesPerCharge), String(large), 'e'])
  assert.equal(counts.charged, bodyPiecesPerCharge)
})

test('reading stops when the pieces fill the buffer, as it does without gathering', async () => {
  const { body, counts } = bodyOf()
  const mayGoOn = Array.from({ length: 2_000 }, () => body.push(Buffer.from('s')))
  assert.equal(mayGoOn.indexOf(false), 1_999)
  await Promise.resolve()
  assert.equal(counts.pauses, 1)
  assert.equal(body.readableLength, 2_000)
})
