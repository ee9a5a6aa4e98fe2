import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LoopBudget } from '../../../src/http/loop-budget.ts'
import {
  loopBudgetBurstMs,
  loopBudgetShare,
  loopDebtMsMax,
  loopDebtorsMax,
} from '../../../src/http/limits.ts'

test('a debtor waits from the moment its debt is over the burst, until it has come down to that', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopBudgetBurstMs, 0)
  assert.equal(budget.waitMs('a', 0), 0)
  budget.charge('a', 10, 0)
  const waitMs = budget.waitMs('a', 0)
  assert.equal(waitMs, 10 / loopBudgetShare)
  assert.ok(budget.waitMs('a', waitMs - 1) > 0)
  assert.equal(budget.waitMs('a', waitMs), 0)
})

test('who uses its share of the time and no more never waits', () => {
  const budget = new LoopBudget()
  for (let nowMs = 0; nowMs < 10_000; nowMs += 100) {
    budget.charge('a', 100 * loopBudgetShare, nowMs)
    assert.equal(budget.waitMs('a', nowMs), 0)
  }
})

test('one debtor has nothing to do with another', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopDebtMsMax, 0)
  budget.charge('b', 1, 0)
  assert.ok(budget.waitMs('a', 0) > 0)
  assert.equal(budget.waitMs('b', 0), 0)
  assert.equal(budget.waitMs('c', 0), 0)
})

test('no debt is waited for longer than a bounded time', () => {
  const budget = new LoopBudget()
  for (let nth = 0; nth < 100; nth++) budget.charge('a', loopDebtMsMax, 0)
  assert.equal(budget.waitMs('a', 0), (loopDebtMsMax - loopBudgetBurstMs) / loopBudgetShare)
})

test('it is known without asking for each whether anyone has to wait', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopBudgetBurstMs, 0)
  assert.ok(!budget.isAnyoneOver(0))
  budget.charge('b', loopBudgetBurstMs + 10, 0)
  budget.charge('a', 1, 0)
  assert.ok(budget.isAnyoneOver(0))
  assert.ok(budget.isAnyoneOver(10 / loopBudgetShare - 1))
  assert.ok(!budget.isAnyoneOver(10 / loopBudgetShare))
})

test('a debtor that has paid is forgotten when it is asked for', () => {
  const budget = new LoopBudget()
  budget.charge('a', 5, 0)
  assert.equal(budget.debtors, 1)
  assert.equal(budget.waitMs('a', 5 / loopBudgetShare), 0)
  assert.equal(budget.debtors, 0)
})

test('a bounded number of debtors is known: those that have paid go first, then the oldest', () => {
  const budget = new LoopBudget()
  for (let nth = 0; nth < loopDebtorsMax; nth++) budget.charge(`old ${nth}`, 5, 0)
  budget.charge('new', loopDebtMsMax, 1)
  assert.equal(budget.debtors, loopDebtorsMax)
  assert.ok(budget.waitMs('new', 1) > 0)
  budget.charge('newer', 5, 5 / loopBudgetShare)
  assert.equal(budget.debtors, 2)
})
