/** The messages between the case `abuse` and the helper `attacker`. */

export interface AttackQuestion {
  readonly attack: AttackPlan
  readonly durationMs: number
}

interface Attacked {
  readonly port: number
  /** The source address of the connections, so that they are not counted with the measured ones. */
  readonly fromAddress: string
}

/** Sends a request, waits for its response, and sends it again; reconnects if the server has closed the connection. */
export interface RepeatedAttack extends Attacked {
  readonly kind: 'repeat'
  readonly connections: number
  /** Sent in turn, each as often as the others. */
  readonly requests: readonly Uint8Array[]
}

/** Sends a head, and pieces after it for as long as the server reads. */
export interface EndlessAttack extends Attacked {
  readonly kind: 'endless'
  readonly connections: number
  readonly heads: readonly Uint8Array[]
  readonly piece: Uint8Array
}

/** Opens connections, sends one message on each and keeps it open. */
export interface CrowdAttack extends Attacked {
  readonly kind: 'crowd'
  readonly openedPerSecond: number
  readonly openMax: number
  readonly messages: readonly Uint8Array[]
}

export type AttackPlan = RepeatedAttack | EndlessAttack | CrowdAttack

export interface AttackCounts {
  /** Connections that were opened. */
  readonly connections: number
  readonly bytesSent: number
  /** Pieces of responses that arrived. */
  readonly answers: number
}
