import { fleetScript } from "../../../store/coordinator/valkey/fleet/fleet-script.ts";
import { limitScripts } from "../../../store/coordinator/valkey/limits/scripts/limit-scripts.ts";
import { placeScripts } from "../../../store/coordinator/valkey/places/valkey-allotments.ts";

/** All scripts that a worker runs in the server of `limits.store`. */
export const sharedScripts = [...limitScripts, fleetScript, ...placeScripts];
