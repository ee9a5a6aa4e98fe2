import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  LoopBudget,
  loopBudgetBurstMs,
  loopBudgetShare,
  loopDebtMsMax,
  loopDebtorsMax,
} from '../../../../src/admission/budgets/loop-budget.ts'

test('a debtor waits from the moment its debt exceeds the burst until it is down to it again', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopBudgetBurstMs, 0)
  assert.equal(budget.waitMs('a', 0), 0)
  budget.charge('a', 10, 0)
  const waitMs = budget.waitMs('a', 0)
  assert.equal(waitMs, 10 / loopBudgetShare)
  assert.ok(budget.waitMs('a', waitMs - 1) > 0)
  assert.equal(budget.waitMs('a', waitMs), 0)
})

test('a client that stays within its share of the time never waits', () => {
  const budget = new LoopBudget()
  for (let nowMs = 0; nowMs < 10_000; nowMs += 100) {
    budget.charge('a', 100 * loopBudgetShare, nowMs)
    assert.equal(budget.waitMs('a', nowMs), 0)
  }
})

test('debtors are independent', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopDebtMsMax, 0)
  budget.charge('b', 1, 0)
  assert.ok(budget.waitMs('a', 0) > 0)
  assert.equal(budget.waitMs('b', 0), 0)
  assert.equal(budget.waitMs('c', 0), 0)
})

test('the wait for a debt is bounded', () => {
  const budget = new LoopBudget()
  for (let nth = 0; nth < 100; nth++) budget.charge('a', loopDebtMsMax, 0)
  assert.equal(budget.waitMs('a', 0), (loopDebtMsMax - loopBudgetBurstMs) / loopBudgetShare)
})

test('the budget knows whether any client has to wait without asking for each one', () => {
  const budget = new LoopBudget()
  budget.charge('a', loopBudgetBurstMs, 0)
  assert.ok(!budget.isAnyoneOver(0))
  budget.charge('b', loopBudgetBurstMs + 10, 0)
  budget.charge('a', 1, 0)
  assert.ok(budget.isAnyoneOver(0))
  assert.ok(budget.isAnyoneOver(10 / loopBudgetShare - 1))
  assert.ok(!budget.isAnyoneOver(10 / loopBudgetShare))
})

test('a debtor that has paid is forgotten at its next look-up', () => {
  const budget = new LoopBudget()
  budget.charge('a', 5, 0)
  assert.equal(budget.debtors, 1)
  assert.equal(budget.waitMs('a', 5 / loopBudgetShare), 0)
  assert.equal(budget.debtors, 0)
})

test('the number of known debtors is bounded: those that have paid are removed first, then the oldest', () => {
  const budget = new LoopBudget()
  for (let nth = 0; nth < loopDebtorsMax; nth++) budget.charge(`old ${nth}`, 5, 0)
  budget.charge('new', loopDebtMsMax, 1)
  assert.equal(budget.debtors, loopDebtorsMax)
  assert.ok(budget.waitMs('new', 1) > 0)
  budget.charge('newer', 5, 5 / loopBudgetShare)
  assert.equal(budget.debtors, 2)
})
