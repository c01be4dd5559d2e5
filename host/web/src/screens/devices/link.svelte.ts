// The device link of the service, which not every service has.
import { CallError, type MethodName, type Params } from '../../rpc/client';
import { session } from '../../commands/session.svelte';

/** A paired device. */
export interface Device {
  fingerprint: string;
  name: string;
  platform?: string;
  appVersion?: string;
  online: boolean;
  /** Unix seconds. */
  pairedAt: number;
  lastSeenAt: number;
  defaultSaveDir?: string;
  acceptsTasks: boolean;
  allowPrivate: boolean;
  /** Downloads that wait for it. */
  queued: number;
}

/** A device nearby that is not paired. */
export interface Peer {
  fingerprint?: string;
  name: string;
  platform?: string;
  host: string;
  port: number;
}

/** A device that asks to be paired. */
export interface PairingRequest {
  sessionId: string;
  sas: string;
  peerName: string;
  peerPlatform?: string;
  peerFingerprint: string;
  expiresAtUnixMs: number;
}

/** A download that waits for its device, or was refused by it. */
export interface Waiting {
  id: string;
  fingerprint: string;
  deviceName: string;
  url: string;
  fileName: string;
  expiresAt: number;
  attempts: number;
  error: string;
}

export interface Code {
  code: string;
  expiresAtUnixMs: number;
  addresses: string[];
  fingerprint: string;
  deviceName: string;
}

export interface Begun {
  token: string;
  sas: string;
  peerName: string;
  peerFingerprint: string;
}

interface Calls {
  pairingCode: [null, Code];
  stopPairing: [null, unknown];
  'discovery.set': [{ enabled: boolean }, unknown];
  probe: [{ address: string }, Peer];
  pairBegin: [{ address: string; code: string }, Begun];
  pairFinish: [{ token: string; accept: boolean }, { paired: boolean; device?: Device }];
  approve: [{ sessionId: string; accept: boolean }, unknown];
  refresh: [null, Device[]];
  remove: [{ fingerprint: string }, unknown];
  update: [{ fingerprint: string; acceptsTasks?: boolean; allowPrivate?: boolean }, Device];
  dispatch: [{ fingerprint: string; url: string; fileName?: string; saveDir?: string }, { taskId?: string; queued?: boolean }];
  outbox: [null, Waiting[]];
  outboxRemove: [{ id: string }, unknown];
}

class Link {
  /** Whether the service has it. */
  isThere = $state(false);

  constructor() {
    $effect.root(() => {
      $effect(() => {
        if (session.isLive) void this.#look();
      });
    });
  }

  async #look(): Promise<void> {
    try {
      await this.call('outbox', null);
      this.isThere = true;
    } catch (error) {
      // Without the method, the answer is an error of the protocol.
      this.isThere = !(error instanceof CallError && error.code === 'protocol');
    }
  }

  get devices(): Device[] {
    return session.slices.linkedDevices as Device[];
  }

  get requests(): PairingRequest[] {
    return session.slices.linkPairingRequests as PairingRequest[];
  }

  get nearby(): Peer[] {
    return session.slices.linkDiscovered as Peer[];
  }

  async call<K extends keyof Calls>(name: K, params: Calls[K][0]): Promise<Calls[K][1]> {
    const method = `agent.link.${name}` as MethodName;
    return (await session.call(method, (params ?? undefined) as Params<MethodName>)) as unknown as Calls[K][1];
  }
}

export const link = new Link();
