"""All migrations in their order. A new one also raises `SCHEMA` of `upgrade.py`."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from teamchat.core.store.migrations.m001_initial import m001_initial
from teamchat.core.store.migrations.m002_order_of_use import m002_order_of_use
from teamchat.core.store.migrations.m003_images import m003_images
from teamchat.core.store.migrations.m004_typed import m004_typed
from teamchat.core.store.migrations.m005_long_messages import m005_long_messages
from teamchat.core.store.migrations.m006_undo import m006_undo
from teamchat.core.store.migrations.m007_branches import m007_branches
from teamchat.core.store.migrations.m008_redo import m008_redo
from teamchat.core.store.migrations.m009_unsent import m009_unsent
from teamchat.core.store.migrations.m010_finding import m010_finding
from teamchat.core.store.migrations.m011_imported import m011_imported
from teamchat.core.store.migrations.m012_adoptions import m012_adoptions
from teamchat.core.store.migrations.m013_quotes import m013_quotes
from teamchat.core.store.migrations.m014_any_length import m014_any_length
from teamchat.core.store.migrations.m015_vendor_sessions import m015_vendor_sessions
from teamchat.core.store.migrations.m016_batches import m016_batches
from teamchat.core.store.migrations.m017_fewer_indexes import m017_fewer_indexes
from teamchat.core.store.migrations.m018_counted_together import m018_counted_together
from teamchat.core.store.migrations.m019_processes import m019_processes
from teamchat.core.store.migrations.m020_callers import m020_callers
from teamchat.core.store.migrations.m021_admissions import m021_admissions
from teamchat.core.store.migrations.m022_joined import m022_joined
from teamchat.core.store.migrations.m023_clears import m023_clears
from teamchat.core.store.migrations.m024_handed_over import m024_handed_over
from teamchat.core.store.migrations.m025_pasted import m025_pasted
from teamchat.core.store.migrations.m026_scripts_without_spaces import m026_scripts_without_spaces

Migration = Callable[[sqlite3.Connection], None]
MIGRATIONS: tuple[Migration, ...] = (
    m001_initial,
    m002_order_of_use,
    m003_images,
    m004_typed,
    m005_long_messages,
    m006_undo,
    m007_branches,
    m008_redo,
    m009_unsent,
    m010_finding,
    m011_imported,
    m012_adoptions,
    m013_quotes,
    m014_any_length,
    m015_vendor_sessions,
    m016_batches,
    m017_fewer_indexes,
    m018_counted_together,
    m019_processes,
    m020_callers,
    m021_admissions,
    m022_joined,
    m023_clears,
    m024_handed_over,
    m025_pasted,
    m026_scripts_without_spaces,
)
