/**
 * The names that docs/know/promise.md promises to keep, one in a line: calls with their parameters, scopes, fields and error
 * codes, options with their defaults, commands, metrics, events, and what the clients export. test/fixtures/promised.txt has
 * those of every version so far. `npm run docs` adds new ones to it and never removes any, and a test refuses a version that
 * lacks one.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { isServerOption, synopsisOf } from '../src/cli/commands/command-row.ts'
import { commandTable } from '../src/modules/command-table.ts'
import { optionRows } from '../src/config/config-options.ts'
import { errorKinds } from '../src/kit/errors.ts'
import { operatorEventTypes } from '../src/kit/operator-event.ts'
import { forEachHistogram } from '../src/kit/histograms.ts'
import { forEachMetric } from '../src/kit/metrics.ts'
import { metricsPage } from '../src/features/server/metrics-page.ts'
import { openApiPage } from './openapi-page.ts'

interface Schema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly allOf?: readonly Schema[]
}

interface Body {
  readonly content?: Readonly<Record<string, { readonly schema?: Schema }>>
}

interface Call {
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: string
    readonly required?: boolean
    readonly schema?: Schema
  }[]
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Call>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** Returns all lines, sorted and each once. */
export async function promisedNames(): Promise<readonly string[]> {
  const document: Document = JSON.parse(await openApiPage())
  const schemas = new Map(Object.entries(document.components.schemas))
  const calls = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, call]) =>
      ofCall(call, schemas).map((line) => `${method.toUpperCase()} ${path}${line}`),
    ),
  )
  const errors = Object.entries(errorKinds).map(([code, { status }]) => `error ${code} ${status}`)
  const options = optionRows.map(([, row]) => `option --${row.name} ${row.default ?? ''}`.trim())
  const commands = commandTable.flatMap((row) => [
    `command ${synopsisOf(row)}`,
    ...row.options
      .filter((option) => !isServerOption(option))
      .map(({ name }) => `command ${row.name} --${name}`),
  ])
  const events = operatorEventTypes.map((type) => `event ${type}`)
  const lines = [...calls, ...errors, ...options, ...commands, ...events]
  return [...new Set([...lines, ...(await ofMetrics()), ...ofClients()])].toSorted()
}

function ofCall(call: Call, schemas: ReadonlyMap<string, Schema>): readonly string[] {
  const { security = [], parameters = [], requestBody, responses } = call
  const scopes = security.flatMap(({ key = [] }) => key)
  const needed = parameters.filter(({ required }) => required === true).map(({ name }) => name)
  // The form of an error is the same everywhere.
  const results = Object.entries(responses).filter(([status]) => Number(status) < 400)
  const bodies = Object.entries({ takes: requestBody, ...Object.fromEntries(results) }).flatMap(
    ([name, body]) =>
      Object.entries(body?.content ?? {}).flatMap(([type, { schema = {} }]) =>
        ofSchema(schema, { schemas, isTaken: name === 'takes' }).map(
          (field) => ` ${name} ${type === 'application/json' ? '' : `${type} `}${field}`,
        ),
      ),
  )
  return [
    ` needs ${needed.join(' ')}`.trimEnd(),
    ...scopes.map((scope) => ` for scope ${scope}`),
    ...parameters.flatMap((parameter) =>
      ofSchema(parameter.schema ?? {}, { schemas, isTaken: true }).map(
        (field) => ` ${parameter.in} ${parameter.name}${field}`,
      ),
    ),
    ...results.map(([status]) => ` ${status}`),
    ...bodies,
  ]
}

interface Reading {
  readonly schemas: ReadonlyMap<string, Schema>
  /** A field that is taken must not become a required one. */
  readonly isTaken: boolean
}

/** The fields of a schema with their types, and the values of those that are words. Each schema is named once within itself. */
function ofSchema(schema: Schema, reading: Reading, within = new Set<string>()): readonly string[] {
  const { $ref } = schema
  if ($ref !== undefined) {
    const name = $ref.replace('#/components/schemas/', '')
    const found = reading.schemas.get(name)
    if (found === undefined || within.has(name)) return []
    return ofSchema(found, reading, new Set([...within, name]))
  }
  const { type = [], properties = {}, required = [], items } = schema
  const of = (part: Schema, prefix: string): readonly string[] =>
    ofSchema(part, reading, within).map((line) => `${prefix}${line}`)
  return [
    ...[type].flat().map((each) => `: ${each}`),
    ...valuesOf(schema).map((value) => ` = ${JSON.stringify(value)}`),
    ...(reading.isTaken && required.length > 0 ? [` needs ${required.join(' ')}`] : []),
    ...Object.entries(properties).flatMap(([name, field]) => of(field, `.${name}`)),
    ...[items ?? []].flat().flatMap((item) => of(item, '[]')),
    ...choicesOf(schema).flatMap((choice) => of(choice, '')),
  ]
}

function choicesOf({ anyOf = [], oneOf = [], allOf = [] }: Schema): readonly Schema[] {
  return [...anyOf, ...oneOf, ...allOf]
}

function valuesOf({ const: only, enum: several = [] }: Schema): readonly unknown[] {
  return only === undefined ? several : [only]
}

/** Returns the page of a server that has counted nothing: names, types and help of all metrics, in their order. */
export async function emptyMetricsPage(): Promise<string> {
  const times = forEachHistogram(({ boundsMs }) => ({
    counts: [...boundsMs.map(() => 0), 0],
    sumMs: 0,
  }))
  const { text } = await metricsPage(
    forEachMetric(() => 0),
    times,
    '',
  )
  return text
}

async function ofMetrics(): Promise<readonly string[]> {
  const text = await emptyMetricsPage()
  const withoutBuckets = text.replace(/,?le=".*?"/g, '').replaceAll('{}', '')
  return [...withoutBuckets.matchAll(/^(\w+(?:\{.*\})?) \S+$/gm)].map(
    ([, name = '']) => `metric ${name}`,
  )
}

/** What the clients export: in TypeScript the signatures that its page shows, with their members. */
function ofClients(): readonly string[] {
  const signatures = read('docs/use/client.md').matchAll(
    /^(?:class|interface|type|function) (\w+).*(?:\n[ }].*)*/gm,
  )
  const ofTypeScript = [...signatures].flatMap(([text, name = '']) => [
    name,
    ...[...text.matchAll(/^ {2}(?:readonly )?(\w+)\??[<(:]/gm)].map(
      ([, member = '']) => `${name}.${member}`,
    ),
  ])
  const ofPython = [
    ...read('clients/python/postbote_client/__init__.py').matchAll(/^ {4}"(\w+)",$/gm),
  ]
  const folder = new URL('../../clients/go/', import.meta.url)
  const goFiles = readdirSync(folder).filter((name) => /(?<!_test)\.go$/.test(name))
  const ofGo = goFiles.flatMap((name) => [
    ...read(`clients/go/${name}`).matchAll(/^(?:type|func) ((?:\(\w+ \*?[A-Z]\w*\) )?[A-Z]\w*)/gm),
  ])
  return [
    ...ofTypeScript.map((name) => `TypeScript ${name}`),
    ...ofPython.map(([, name = '']) => `Python ${name}`),
    ...ofGo.map(([, name = '']) => `Go ${name.replace(/^\(\w+ \*?(\w+)\) /, '$1.')}`),
  ]
}

function read(name: string): string {
  return readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8')
}
