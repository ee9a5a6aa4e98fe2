import assert from 'node:assert/strict'
import { test } from 'node:test'
import Fastify, { type FastifyInstance } from 'fastify'
import {
  addDashboardRoutes,
  DashboardFiles,
  dashboardPaths,
} from '../../../src/private-api/dashboard-files.ts'

function serverOf(read: (name: string) => Promise<Buffer>): FastifyInstance {
  const app = Fastify({ exposeHeadRoutes: false })
  addDashboardRoutes(app, new DashboardFiles(read))
  return app
}

test('the files have exact types and headers that let the page use only itself', async () => {
  const app = serverOf((name) => Promise.resolve(Buffer.from(`content of ${name}`)))
  const types = await Promise.all(
    dashboardPaths.map(async (url) => {
      const { statusCode, headers, body } = await app.inject({ method: 'GET', url })
      assert.equal(statusCode, 200)
      assert.match(body, /^content of /)
      const policy = String(headers['content-security-policy'])
      assert.match(
        policy,
        /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/,
      )
      assert(!policy.includes('unsafe'))
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['referrer-policy'], 'no-referrer')
      return headers['content-type']
    }),
  )
  assert.deepEqual(types, [
    'text/html; charset=utf-8',
    'text/javascript; charset=utf-8',
    'text/javascript; charset=utf-8',
    'text/css; charset=utf-8',
  ])
})

test('a file is read once, and a browser that has it gets 304', async () => {
  const read: string[] = []
  const app = serverOf((name) => {
    read.push(name)
    return Promise.resolve(Buffer.from('content'))
  })
  const { headers } = await app.inject({ method: 'GET', url: '/app.js' })
  const etag = String(headers.etag)
  for (const tag of [etag, `W/${etag}`, `"other", ${etag}`]) {
    const again = await app.inject({ url: '/app.js', headers: { 'if-none-match': tag } })
    assert.equal(again.statusCode, 304)
    assert.equal(again.body, '')
  }
  const other = await app.inject({ url: '/app.js', headers: { 'if-none-match': '"other"' } })
  assert.equal(other.statusCode, 200)
  assert.deepEqual(read, ['app.js'])
})

test('a build without the dashboard has no page, until the page is there', async () => {
  let isBuilt = false
  const files = new DashboardFiles(() =>
    isBuilt ? Promise.resolve(Buffer.from('page')) : Promise.reject(new Error('ENOENT')),
  )
  await assert.rejects(files.at('/'), { code: 'NOT_FOUND' })
  isBuilt = true
  assert.equal((await files.at('/')).body.toString(), 'page')
  await assert.rejects(files.at('/admin.key'), { code: 'NOT_FOUND' })
})
