import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openApiPage, unusedPrivateApi } from '../../../../scripts/openapi-page.ts'

test('every route of the private API is in the document, except those between workers and files of the dashboard', async () => {
  const app = await unusedPrivateApi()
  await app.ready()
  const routes = routesIn(app.printRoutes({ commonPrefix: false }))
  await app.close()
  assert(routes.length > 25, routes.join())
  const { paths }: { readonly paths: Record<string, object> } = JSON.parse(await openApiPage())
  const documented = Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  const shown = routes.filter(
    (route) => !/ \/(?:internal\/.*|(?:app|first-paint)\.\w+)?$/.test(route),
  )
  assert.deepEqual(shown.toSorted(), documented.toSorted())
})

test('the document needs the admin key', async () => {
  const app = await unusedPrivateApi()
  const { statusCode, body } = await app.inject({ url: '/v1/openapi.json' })
  await app.close()
  assert.equal(statusCode, 401)
  assert.match(body, /UNAUTHORIZED/)
})

test('each request gets the same document', async () => {
  const app = await unusedPrivateApi()
  const headers = { authorization: 'Bearer key' }
  const [first, second] = [
    await app.inject({ url: '/v1/openapi.json', headers }),
    await app.inject({ url: '/v1/openapi.json', headers }),
  ]
  await app.close()
  assert.match(String(first.headers['content-type']), /^application\/json/)
  assert.equal(first.body, second.body)
  assert.deepEqual(JSON.parse(first.body), JSON.parse(await openApiPage()))
})

/** Reads Fastify's drawing of its routes: a line has a part of a path, its verbs, and 4 characters for each level. */
function routesIn(drawing: string): string[] {
  const parts: string[] = []
  return drawing.split('\n').flatMap((line) => {
    const [, indent = '', part = '', verbs = ''] = /^([^\w/]*)(\S+) \((.*)\)$/.exec(line) ?? []
    if (part === '') return []
    parts.splice(indent.length / 4 - 1, Infinity, part)
    const path = parts.join('').replaceAll(/:(\w+)/g, '{$1}')
    return verbs.split(', ').map((verb) => `${verb} ${path}`)
  })
}
