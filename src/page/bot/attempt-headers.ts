import { element } from '../elements/element.ts'
import type { Facts } from '../elements/fact-list.ts'
import { factList } from '../elements/fact-list.ts'
import type { RequestShape, ShownHeaderShape } from '../frame/shapes.ts'

/** Makes the headers of the request and of the response to an attempt, as far as they are known; undefined if none are. */
export function attemptHeaders(
  request: RequestShape | null | undefined,
  response: readonly ShownHeaderShape[] | null | undefined,
): HTMLElement | undefined {
  const parts = [
    ...headerPart('Request, as it is sent now', requestFacts(request)),
    ...headerPart('Response', factsOf(response)),
  ]
  return parts.length === 0 ? undefined : element('div', {}, ...parts)
}

function requestFacts(request: RequestShape | null | undefined): Facts {
  if (request === null || request === undefined) return []
  const { method, host, headers } = request
  return [[method, `to ${host}`], ...factsOf(headers)]
}

function factsOf(headers: readonly ShownHeaderShape[] | null | undefined): Facts {
  return (headers ?? []).map(({ name, value }) => [name, value] as const)
}

function headerPart(title: string, facts: Facts): readonly HTMLElement[] {
  if (facts.length === 0) return []
  const list = factList()
  list.show(facts)
  return [element('h3', {}, title), list.root]
}
