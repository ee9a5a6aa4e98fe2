/** The headers of a signed delivery. */
export const signatureHeaderNames = [
  'webhook-id',
  'webhook-timestamp',
  'webhook-signature',
] as const

/**
 * Headers that say how a request is framed, where it goes or what its body is, and the trace that a delivery has a place in.
 * Those of a proxy never reach an endpoint.
 */
const protocolName =
  /^(?:connection|expect|host|keep-alive|te|traceparent|trailer|transfer-encoding|upgrade|(?:content|proxy)-.*)$/

/** Whether only this server decides about the header of deliveries with this name, in whatever case. */
export function isProtocolHeader(name: string): boolean {
  const lower = name.toLowerCase()
  return protocolName.test(lower) || signatureHeaderNames.some((own) => own === lower)
}
