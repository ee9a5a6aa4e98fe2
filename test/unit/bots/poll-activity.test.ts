import assert from 'node:assert/strict'
import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { test } from 'node:test'
import { setOrigin } from '../../../src/http/connection-origin.ts'
import { PollActivities } from '../../../src/bots/poll-activity.ts'
import {
  PollActivity,
  type PollClient,
  userAgentLengthMax,
} from '../../../src/bots/poll-activity.ts'

const nowMs = 1_800_000_000_000
const minuteMs = 60_000

function callFrom(
  clientAddress: string,
  headers: Readonly<Record<string, string>> = {},
): IncomingMessage {
  const request = new IncomingMessage(new Socket())
  Object.assign(request.headers, headers)
  setOrigin(request, { listener: 'bot', clientAddress, hops: 0 })
  return request
}

function clientOf(request: IncomingMessage): PollClient | undefined {
  const activity = new PollActivity()
  activity.polledBy(request)
  return activity.client
}

test('what polls get and confirm is counted by the minute, for an hour', () => {
  const activity = new PollActivity()
  assert.deepEqual(
    activity.lastHour(nowMs).fetched,
    Array.from({ length: 60 }, () => 0),
  )
  activity.fetched(100, nowMs)
  activity.fetched(7, nowMs + 1)
  activity.confirmed(107, nowMs + 3 * minuteMs)
  const { fetched, confirmed } = activity.lastHour(nowMs + 4 * minuteMs)
  assert.deepEqual([fetched.length, fetched.slice(-6)], [60, [0, 107, 0, 0, 0, 0]])
  assert.deepEqual(confirmed.slice(-6), [0, 0, 0, 0, 107, 0])
  const later = activity.lastHour(nowMs + 61 * minuteMs)
  assert.deepEqual([Math.max(...later.fetched), Math.max(...later.confirmed)], [0, 107])
  // The place of the first minute in the ring belongs to a later one.
  activity.fetched(1, nowMs + 60 * minuteMs)
  assert.deepEqual(activity.lastHour(nowMs + 60 * minuteMs).fetched.filter(Boolean), [1])
  activity.fetched(2, nowMs + 200 * minuteMs)
  assert.deepEqual(activity.lastHour(nowMs + 200 * minuteMs).fetched.filter(Boolean), [2])
})

test('a clock that is set back begins a new hour', () => {
  const activity = new PollActivity()
  activity.fetched(5, nowMs)
  activity.fetched(3, nowMs - 10 * minuteMs)
  assert.deepEqual(activity.lastHour(nowMs - 10 * minuteMs).fetched.filter(Boolean), [3])
})

test('the program that polled last is known, and the one before that differs', () => {
  const activity = new PollActivity()
  assert.equal(activity.client, undefined)
  const one = callFrom('198.51.100.7', { 'user-agent': 'aiogram/3.1' })
  const other = callFrom('198.51.100.8', { 'user-agent': 'aiogram/3.1' })
  activity.polledBy(one)
  const shown = activity.client
  activity.polledBy(callFrom('198.51.100.7', { 'user-agent': 'aiogram/3.1' }))
  assert.equal(activity.client, shown, 'a poll of the same program makes nothing')
  assert.equal(activity.clientBefore, undefined)
  activity.polledBy(other)
  assert.deepEqual(activity.client, { userAgent: 'aiogram/3.1', address: '198.51.100.8' })
  activity.polledBy(one)
  assert.equal(activity.client, shown, 'nor do programs that poll in turns')
  assert.deepEqual(activity.clientBefore, { userAgent: 'aiogram/3.1', address: '198.51.100.8' })
})

function address(from: string, realIp?: string): string | undefined {
  return clientOf(callFrom(from, realIp === undefined ? {} : { 'x-real-ip': realIp }))?.address
}

test('the address is that of the connection, or what a proxy in the own network reports', () => {
  assert.equal(address('2001:db8::1'), '2001:db8::1')
  assert.equal(address('::ffff:198.51.100.7'), '198.51.100.7')
  assert.equal(address('8.8.8.8', '203.0.113.9'), '8.8.8.8', 'anybody can write a header')
  assert.equal(address('10.0.0.1', ' 203.0.113.9 '), '203.0.113.9')
  assert.equal(address('10.0.0.1', '<b>'), '10.0.0.1')
  assert.equal(address('10.0.0.1', `203.0.113.9${' '.repeat(99)}`), '10.0.0.1')
  assert.equal(address(''), 'unix')
})

function callOf(userAgent: string): IncomingMessage {
  return callFrom('198.51.100.7', { 'user-agent': userAgent })
}

function agent(text: string): string | undefined {
  return clientOf(callOf(text))?.userAgent
}

test('a User-Agent is cut, made visible, and shows no token', () => {
  assert.equal(agent(''), undefined)
  assert.equal(agent('a\u0085b\tc'), 'a\ufffdb c')
  assert.equal(agent('x'.repeat(9_000)), 'x'.repeat(userAgentLengthMax))
  const token = `4711:${'A'.repeat(35)}`
  assert.equal(agent(`bot ${token}`), 'bot ***')
  const late = agent(`${'x'.repeat(userAgentLengthMax - 9)} ${token}`)
  assert(late?.includes('AAAA') === false, late)
})

test('long User-Agents that differ only where they are not shown differ in length, or are one', () => {
  const activity = new PollActivity()
  activity.polledBy(callOf(`${'x'.repeat(200)}a`))
  activity.polledBy(callOf(`${'x'.repeat(200)}b`))
  assert.equal(activity.clientBefore, undefined)
})

test('activities outlive their bots, and only those of so many queues are kept', () => {
  const activities = new PollActivities(2)
  const first = activities.of(1)
  activities.of(2)
  assert.equal(activities.of(1), first)
  activities.of(3)
  assert.deepEqual(
    [1, 2, 3].map((queue) => activities.find(queue) === undefined),
    [false, true, false],
  )
  activities.forget(1)
  assert.equal(activities.find(1), undefined)
})
