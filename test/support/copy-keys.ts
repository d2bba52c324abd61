import type { ValkeyConnection } from "../../src/store/coordinator/valkey/connection/valkey-connection.ts";

const copyScript = `
redis.call('SELECT', ARGV[2])
redis.call('FLUSHDB')
redis.call('SELECT', ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', ARGV[2]) end
`;

/** Makes one database of a server equal to another one. */
export async function copyKeys(
  connection: Pick<ValkeyConnection, "send">,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<void> {
  await connection.send("any", "EVAL", [copyScript, "0", String(from), String(to)]);
}
