/**
 * What a request passes before the APIs of a worker answer it. What kind of request it is, is decided once, by the beginning of
 * its target: nearly all on the public listener are calls of bots, which are no probe and not for the owner's page.
 */
import type { RequestListener } from 'node:http'
import type { FastifyInstance } from 'fastify'
import type { BotApi } from '../bot-api/bot-api.ts'
import { isBotTarget } from '../http/target.ts'
import type { RequestRouter } from '../links/forward/request-router.ts'
import type { ListenerKind } from '../http/listener.ts'
import type { BudgetGate } from '../admission/budgets/budget-gate.ts'
import type { PortalListener } from './portal-listener.ts'
import type { PublicProbes } from './public-probes.ts'

export interface WorkerHandlersOptions {
  readonly gate: Pick<BudgetGate, 'botListener' | 'privateListener'>
  readonly router: Pick<RequestRouter, 'listener'>
  readonly probes: Pick<PublicProbes, 'onPublic'>
  readonly portal: Pick<PortalListener, 'listener'>
  readonly bot: Pick<BotApi, 'listener'>
  readonly privateApi: Pick<FastifyInstance, 'routing'>
}

/** Returns the listener of each kind of server. */
export function workerHandlers(
  options: WorkerHandlersOptions,
): Readonly<Record<ListenerKind, RequestListener>> {
  const { gate, router, probes, portal, bot, privateApi } = options
  const toBot = (answer: RequestListener): RequestListener =>
    gate.botListener(router.listener('bot', answer))
  const call = toBot(bot.listener)
  const other = probes.onPublic(toBot(portal.listener(bot.listener)))
  const own: RequestListener = (request, response) => privateApi.routing(request, response)
  return {
    bot: (request, response) => {
      const answer = isBotTarget(request.url ?? '/') ? call : other
      answer(request, response)
    },
    private: gate.privateListener(router.listener('private', portal.listener(own))),
  }
}
