from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from leadline.core.statistics.row_quantiles import row_quantiles


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(data=st.data())
def test_a_quantile_is_to_the_bit_that_of_numpy(dtype: type, data: st.DataObject) -> None:
    measured = st.floats(-1e9, 1e9) if dtype is np.float64 else st.floats(-(2.0**30), 2.0**30, width=32)
    shape = data.draw(array_shapes(min_dims=2, max_dims=2, max_side=12))
    values = data.draw(arrays(dtype, shape, elements=measured | st.just(np.nan)))
    share = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows that were never measured
        expected = np.nanquantile(values, share, axis=1)
    assert row_quantiles(values, share).tobytes() == expected.astype(dtype).tobytes()
