/** The tests of the client for Go, with the tool of Go: what the conformance suite cannot see. Skipped where Go is missing. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { missing } from '../../clients/conformance/conformance-clients.ts'
import { goTool } from '../../clients/conformance/go-tool.ts'

test('the client for Go passes go vet and its own tests', {
  skip: missing('go', 'version') ?? false,
}, () => {
  assert.equal(goTool(['vet', './...']), undefined)
  assert.equal(goTool(['test', './...']), undefined)
})
