import assert from 'node:assert/strict'
import { test } from 'node:test'
import { PortalFrame } from '../../../src/access/portal-frame.ts'

test('only an origin that a link was made with is believed', () => {
  const frame = new PortalFrame('the admin key')
  const origin = 'https://platform.example:8443'
  const query = Object.fromEntries(new URLSearchParams(frame.query(origin)))
  assert.equal(frame.originIn(query), origin)
  assert.equal(frame.query(undefined), '')
  const { mac = '' } = query
  for (const wrong of [
    {},
    { origin },
    { mac },
    { origin: 'https://evil.example', mac },
    { origin, mac: mac.slice(0, -2) },
    { origin, mac: '' },
    { origin: [origin], mac },
    { origin, mac: [mac] },
    { origin: `${origin} https://evil.example`, mac },
  ]) {
    assert.equal(frame.originIn(wrong), undefined, JSON.stringify(wrong))
  }
  assert.equal(new PortalFrame('another key').originIn(query), undefined)
})
