/** The cases, in the order in which they run. */
import type { BenchCase } from '../contestant.ts'
import { backlogCase } from './backlog.ts'
import { fairnessCases } from './fairness.ts'
import { holdsCase } from './holds.ts'
import { ingestCase } from './ingest.ts'
import { emptyPollCase, fullPollCase } from './poll.ts'
import { webhookCases } from './webhook.ts'

export const allCases: readonly BenchCase[] = [
  ingestCase(true),
  ingestCase(false),
  emptyPollCase,
  fullPollCase,
  ...webhookCases,
  ...fairnessCases,
  holdsCase,
  backlogCase,
]
