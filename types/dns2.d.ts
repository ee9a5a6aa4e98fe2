/** The part of dns2 that the tests use: a DNS server over UDP. */
declare module 'dns2' {
  import type { Socket } from 'node:dgram'

  interface Question {
    readonly name: string
    readonly type: number
  }
  interface Packet {
    readonly questions: readonly Question[]
    readonly header: { rcode: number }
    readonly answers: object[]
  }
  class UDPServer extends Socket {
    constructor(options: { readonly type: 'udp4' })
    listen(port: number, address: string): Promise<void>
    on(event: 'request', listener: (request: Packet, send: (answer: Packet) => unknown) => void): this
    on(event: 'requestError', listener: (error: unknown) => void): this
  }
  const dns2: {
    readonly UDPServer: typeof UDPServer
    readonly Packet: {
      readonly TYPE: { readonly A: number; readonly AAAA: number }
      readonly CLASS: { readonly IN: number }
      createResponseFromRequest(request: Packet): Packet
    }
  }
  export default dns2
}
