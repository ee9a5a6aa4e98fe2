import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  settingsAsStored,
  storedDefaultTypes,
  withAllowedTypes,
} from '../../../src/bots/settings-change.ts'
import { defaultTypesMask, maskOf } from '../../../src/kit/update-types.ts'

const webhook = { url: 'https://example.com/', maxConnections: 40 }

test('types that a bot did not name are not stored, so the bot follows the default set of each version', () => {
  assert.deepEqual(withAllowedTypes({ webhook, allowedTypes: 5 }, 'default'), { webhook })
  assert.deepEqual(withAllowedTypes({ webhook }, 5), { webhook, allowedTypes: 5 })
})

test('the default set that an earlier version stored counts as none, and any other set is kept', () => {
  // It must stay what version 0.1 wrote, whatever becomes of the default set.
  assert.equal(storedDefaultTypes, defaultTypesMask)
  assert.deepEqual(settingsAsStored({ webhook, allowedTypes: storedDefaultTypes }), { webhook })
  const settings = { webhook, allowedTypes: maskOf(['message']) }
  assert.equal(settingsAsStored(settings), settings)
})
