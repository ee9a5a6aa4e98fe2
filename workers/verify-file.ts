/** The Piscina task that verifies one file of a shard. The thread only reads, so it may end at any moment. */

import type { FileFault, VerifyTask } from '../src/leveldb-files/files-part.ts'
import { verifyFile as verify } from '../src/leveldb-files/verify-file.ts'

export default function verifyFile(task: VerifyTask): Promise<readonly FileFault[]> {
  return verify(task)
}
