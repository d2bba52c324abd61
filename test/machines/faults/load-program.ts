/**
 * A load of calls from another place: `load-program.ts URL KEY CALLS_PER_SECOND`. When its input
 * ends, it prints its calls.
 */
import { StackLoad } from "../stack-load.ts";

const [url = "", key = "", perSecond = "1"] = process.argv.slice(2);
const load = new StackLoad({ url, keys: [key], perSecond: Number(perSecond) });
await Bun.stdin.text();
process.stdout.write(JSON.stringify(await load.stop()));
