import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { type TSchema, Type } from 'typebox'
import { openApiPage } from '../../../../scripts/openapi-page.ts'
import { declareOperations, json, type OperationRow } from '../../../../src/api/operation.ts'
import { openApiDocument } from '../../../../src/features/server/openapi-document.ts'
import { openApiForm } from '../../../support/server/openapi-form.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- a test asserts its shape by using it
const document: any = JSON.parse(await openApiPage())

test('the document has the form of OpenAPI 3.1', () => {
  assertForm(document)
})

test('every schema in the document is one of JSON Schema 2020-12, with known keywords only', () => {
  assert(schemasIn(document).length > 100)
  assertSchemas(document)
})

test('a document with a mistake in its form is found', () => {
  for (const [at, value] of [
    [['openapi'], '3.0.3'],
    [['info', 'licence'], 'MIT'],
    [['paths', '/v1/summary', 'fetch'], {}],
    [['paths', '/v1/summary', 'get', 'responses'], undefined],
    [['paths', '/v1/summary', 'get', 'responses', '2000'], { description: 'A status' }],
    [['paths', '/v1/summary', 'get', 'responses', '200', 'schema'], {}],
    [['paths', '/v1/bots', 'get', 'parameters', '0', 'in'], 'body'],
    [['components', 'schemes'], {}],
  ] as const) {
    assert.throws(() => assertForm(changed(at, value)), at.join())
  }
})

test('a mistake in any schema of a document is found', () => {
  const parameter = ['paths', '/v1/bots', 'get', 'parameters', '0', 'schema']
  const response = ['paths', '/v1/openapi.json', 'get', 'responses', '200', 'content']
  for (const at of [
    ['components', 'schemas', 'BotList'],
    ['components', 'schemas', 'BotState', 'properties', 'pending'],
    parameter,
    [...response, 'application/json', 'schema'],
  ]) {
    for (const [keyword, value] of [
      ['type', 'objekt'],
      ['minimun', 1],
      ['$ref', '#/components/schemas/Nothing'],
    ] as const) {
      const wrong = changed([...at, keyword], value)
      assert.throws(() => assertSchemas(wrong, document), [...at, keyword].join())
    }
  }
})

test('every reference leads to a component, and every component has a reference', () => {
  const targets = valuesOf(document, '$ref').map(String)
  const names = ['responses', 'schemas'].flatMap((kind) =>
    Object.keys(document.components[kind]).map((name) => `#/components/${kind}/${name}`),
  )
  assert.deepEqual([...new Set(targets)].toSorted(), names.toSorted())
})

test('names of operations are unique, and their tags and path parameters are declared', () => {
  const ids = new Set<string>()
  const tags = new Set(document.tags.map(({ name }: { readonly name: string }) => name))
  for (const { path, operation } of operationsIn(document)) {
    assert(!ids.has(operation.operationId), operation.operationId)
    ids.add(operation.operationId)
    assert(tags.has(operation.tags[0]), operation.operationId)
    const declared = (operation.parameters ?? [])
      .filter((each: { readonly in: string }) => each.in === 'path')
      .map((each: { readonly name: string }) => `{${each.name}}`)
    assert.deepEqual(declared, path.match(/\{\w+\}/g) ?? [], path)
  }
})

test('a path parameter without a schema is an error', () => {
  assert.throws(() => documentOf({ route: 'GET /v1/:who' }), /path parameter who/)
})

test('two different schemas cannot have one name', () => {
  const results = {
    200: json(Type.Object({}, { $id: 'Same' })),
    201: json(Type.String({ $id: 'Same' })),
  }
  assert.throws(() => documentOf({ results: () => results }), /two components Same/)
})

test('a call needs the admin key, or a key or session with its scope', () => {
  assert.deepEqual(document.security, [{ adminKey: [] }])
  const open = ['checkHealth', 'checkHealthHead', 'checkReadiness', 'checkReadinessHead']
  const found = operationsIn(document).map(({ operation: { operationId, security } }) => {
    assert.equal(security.length === 0, open.includes(operationId), operationId)
    return [operationId, security]
  })
  const securities = Object.fromEntries(found)
  const [adminKey, manage] = [{ adminKey: [] }, ['manage']]
  assert.deepEqual(securities.pauseBot, [adminKey, { key: manage }, { session: manage }])
  assert.deepEqual(securities.getSession, [adminKey, { key: [] }, { session: [] }])
  assert.deepEqual(securities.beginSession, [adminKey, { key: [] }])
})

test('a parameter with a default is not required, and one without is', () => {
  const query = { a: Type.Integer({ default: 0 }), b: Type.String() }
  const { paths } = JSON.parse(JSON.stringify(documentOf({ query: () => query })))
  const required = paths['/v1/a'].get.parameters.map(
    (each: { readonly name: string; readonly required: boolean }) => [each.name, each.required],
  )
  assert.deepEqual(required, [
    ['a', false],
    ['b', true],
  ])
})

test('a body that may be null may be left out', () => {
  const schema = { type: 'string' }
  const content = { 'application/json': { schema } }
  assert.deepEqual(bodyOf(Type.String()), { required: true, content })
  assert.deepEqual(bodyOf(Type.Union([Type.String(), Type.Null()])), { required: false, content })
})

test('integers that need more than 32 bits say so', () => {
  const formats = valuesOf(document, 'maximum').filter((maximum) => Number(maximum) >= 2 ** 31)
  assert(formats.length > 0)
  assert.equal(valuesOf(document, 'format').length, formats.length)
})

const row: OperationRow = {
  route: 'GET /v1/a',
  scope: 'read',
  about: 'fleet',
  summary: 'A',
  results: () => ({ 200: {} }),
}

const formAjv = new Ajv2020({ allErrors: true })
const isOfForm = formAjv.compile(openApiForm)

function assertForm(shown: unknown): void {
  assert(isOfForm(shown), formAjv.errorsText(isOfForm.errors))
}

/**
 * Ajv checks each schema against the meta-schema of JSON Schema 2020-12, and in its strict mode refuses other keywords.
 * Schemas that `known` has, too, are left out.
 */
function assertSchemas(shown: typeof document, known?: typeof document): void {
  const ajv = new Ajv2020({ strictTypes: false, formats: { int64: true } })
  const local = withLocalReferences(shown)
  const before = new Set(known === undefined ? [] : schemaTextsIn(withLocalReferences(known)))
  ajv.addSchema({ $id: 'components', $defs: local.components.schemas })
  for (const text of schemaTextsIn(local)) {
    if (!before.has(text)) assert.doesNotThrow(() => ajv.compile(JSON.parse(text)), text)
  }
}

function withLocalReferences(shown: typeof document): typeof document {
  const text = JSON.stringify(shown)
  return JSON.parse(text.replaceAll('#/components/schemas/', 'components#/$defs/'))
}

function schemaTextsIn(shown: typeof document): readonly string[] {
  return schemasIn(shown).map((schema) => JSON.stringify(schema))
}

/** Returns a copy of the document with another value at a place; undefined removes what is there. */
function changed(at: readonly string[], value: unknown): typeof document {
  const copy = structuredClone(document)
  const last = at.at(-1) ?? ''
  const parent = at.slice(0, -1).reduce((node, name) => {
    assert(name in node, at.join())
    return node[name]
  }, copy)
  parent[last] = value
  return JSON.parse(JSON.stringify(copy))
}

function documentOf(more: Partial<OperationRow>): ReturnType<typeof openApiDocument> {
  return openApiDocument(Object.values(declareOperations('server', { a: { ...row, ...more } })))
}

function bodyOf(body: TSchema): unknown {
  const text = JSON.stringify(documentOf({ body: () => body }))
  return JSON.parse(text).paths['/v1/a'].get.requestBody
}

interface Found {
  readonly path: string
  readonly method: string
  // oxlint-disable-next-line typescript/no-explicit-any -- as the document
  readonly operation: any
}

function operationsIn({ paths }: { readonly paths: Record<string, object> }): Found[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, each]) => ({ path, method, operation: each })),
  )
}

/** Returns the values of all fields of this name, at any depth. */
function valuesOf(node: unknown, name: string): unknown[] {
  if (typeof node !== 'object' || node === null) return []
  return Object.entries(node).flatMap(([field, value]) => [
    ...(field === name ? [value] : []),
    ...valuesOf(value, name),
  ])
}

function schemasIn(of: typeof document): unknown[] {
  const lines = valuesOf(of, 'x-ndjson-lines').flat()
  return [...valuesOf(of, 'schema'), ...lines, ...Object.values(of.components.schemas)]
}
