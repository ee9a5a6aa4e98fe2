/** Every fixed bound of the server by its name. */
import * as shared from '../src/limits.ts'
import * as access from '../src/access/limits.ts'
import * as app from '../src/app/limits.ts'
import * as botApi from '../src/bot-api/limits.ts'
import * as bots from '../src/bots/limits.ts'
import * as client from '../src/client/limits.ts'
import * as cluster from '../src/cluster/limits.ts'
import * as events from '../src/events/limits.ts'
import * as http from '../src/http/limits.ts'
import * as operations from '../src/operations/limits.ts'
import * as privateApi from '../src/private-api/limits.ts'
import * as queue from '../src/queue/limits.ts'
import * as shard from '../src/shard/limits.ts'
import * as store from '../src/store/limits.ts'
import * as upstream from '../src/upstream/limits.ts'
import * as webhook from '../src/webhook/limits.ts'

export const allLimits: Readonly<Record<string, unknown>> = {
  ...access,
  ...shared,
  ...app,
  ...botApi,
  ...bots,
  ...client,
  ...cluster,
  ...events,
  ...http,
  ...operations,
  ...privateApi,
  ...queue,
  ...shard,
  ...store,
  ...upstream,
  ...webhook,
}
