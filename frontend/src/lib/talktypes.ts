// What the hub answers about conversations and the network of agents (backend/desk writes it). Times are milliseconds since the epoch.
import type { Text } from './types';

export interface Member { id: string; name: Text; role: string; present: boolean; left?: boolean }
/** `for` is set where not everybody in the conversation may read it. */
export interface Turn { id: string; from: Text; from_id: string; mine: boolean; at: number; html: string; thread?: string; in_reply_to?: string; /** Who may read it, where not everybody may. */ for?: Text; /** Who may read what the person answers to it, where not everybody may. */ answer_for?: string[]; /** The question in the inbox that it asks, until that is answered, and what it offers. */ item?: string; options?: string[]; data?: unknown }
export interface Thread { id: string; subject: Text; turns: number; root: string }
export interface Conversation { id: string; subject: Text; open: boolean; inside: boolean; /** Something was said that the person has not read. */ unread: boolean; changed: number; members: Member[]; threads: Thread[]; turns: Turn[]; /** How many stand before these, and of those what threads are below. */ earlier: number; roots: Turn[]; /** What the person has just answered, while it can be taken back. */ held?: { id: string; title: Text; until: number } }

/** A credential that an agent may fetch, until it ends. */
export interface Grant { id: string; agent_id: string; agent: Text; scope: string; resource: Text; secret: string; once: boolean; by: string; at: number; expires_at: number; uses: number; item: string }

export interface NetworkAgent { id: string; agent_id: string; name: Text; role: Text; state: string; parent: string; connected: boolean; /** Who enrolled it showed a credential. */ proved: boolean }
export interface NetworkScope { id: string; name: Text; members: string[] }
export interface Network { agents: NetworkAgent[]; scopes: NetworkScope[]; edges: { from: string; to: string; type: string }[] }
