// undici's one class that webhooks need, without the rest of it (fetch, WebSocket, cookies), which takes a start 50 ms.
declare module 'undici/lib/dispatcher/client.js' {
  import type { Client } from 'undici'
  const client: typeof Client
  export default client
}
